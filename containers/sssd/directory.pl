#!/usr/bin/perl
# Notes which domains SSSD cannot reach, by what SSSD itself tells the system's journal, whose place this takes.
#
#   /run/systemd/journal/socket    where SSSD tells it (sd_journal_send: datagrams with a line for each field)
#   /var/lib/sss/pipes/offline     a line for each domain that is offline: since when (seconds since 1970), its name
#
# It listens before it returns, and prints the number of the process that goes on listening.
use strict;
use warnings;
use Socket;

my ($place, $file) = ('/run/systemd/journal/socket', '/var/lib/sss/pipes/offline');
my %since;

sub note {
    open(my $out, '>', "$file.new") or die "$file: $!\n";
    print $out map { "$since{$_} $_\n" } sort keys %since;
    close($out) or die "$file: $!\n";
    chmod(0644, "$file.new");
    rename("$file.new", $file) or die "$file: $!\n";
}

mkdir($_) for ('/run/systemd', '/run/systemd/journal');
unlink($place);
socket(my $journal, AF_UNIX, SOCK_DGRAM, 0) or die "socket: $!\n";
bind($journal, sockaddr_un($place)) or die "$place: $!\n";
note();

defined(my $child = fork()) or die "fork: $!\n";
if ($child) {
    print "$child\n";
    exit(0);
}
open(STDOUT, '>&', \*STDERR);
while (defined(recv($journal, my $told, 65536, 0))) {
    my ($state) = $told =~ /^MESSAGE=Backend is (online|offline)$/m or next;
    my ($domain) = $told =~ /^SSSD_DOMAIN=([\w.-]{1,255})$/m or next;
    print STDERR "domain $domain: Backend is $state\n";
    if ($state eq 'online') { delete $since{$domain} }
    elsif (keys %since < 64) { $since{$domain} //= time() }
    note();
}
