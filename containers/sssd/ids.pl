#!/usr/bin/perl
# Refuses a configuration in which a person of the directory could have the number of a daemon's user: a person with the
# number 64030 is SlurmUser, with 65534 or 65535 nobody, with 0 root.
#
#   ids.pl FILE    exits with 1, and says why, if a section [domain/...] leaves one of these numbers to the directory
use strict;
use warnings;

my @taken = (0, 64030, 65534, 65535);
my (%domains, $domain);
open(my $in, '<', $ARGV[0]) or die "$ARGV[0]: $!\n";
while (my $line = <$in>) {
    next if $line =~ /^\s*[#;]/;
    if (my ($section) = $line =~ /^\s*\[\s*(.+?)\s*\]/) {
        # Trusted domains have a second slash; their numbers are made by SSSD.
        $domain = $section =~ m{^domain/[^/]+$} ? ($domains{$section} //= {}) : undef;
    } elsif ($domain && $line =~ /^\s*(\w+)\s*[=:]\s*(.*?)\s*$/) {
        $domain->{lc $1} = $2;
    }
}

sub number { my ($text, $default) = @_; return defined $text && $text =~ /^\d{1,10}$/ ? $text : $default }

for my $of (values %domains) {
    my $provider = lc($of->{id_provider} // '');
    my $mapped = lc($of->{ldap_id_mapping} // ($provider eq 'ad' ? 'true' : 'false')) eq 'true';
    my $lowest = $mapped ? number($of->{ldap_idmap_range_min}, 200000) : number($of->{min_id}, 1);
    my $highest = number($of->{max_id}, 0) || 4294967295;
    my $base = $of->{ldap_user_search_base} // '';
    for my $number (@taken) {
        next if $number < $lowest || $number > $highest || index($base, "(!(uidNumber=$number))") >= 0;
        print "a section [domain/...] lets somebody in the directory have the number $number, which belongs to a daemon: "
            . "write max_id = 64029 into it, or min_id = 65536, or name each of 0, 64030, 65534 and 65535 as "
            . "(!(uidNumber=64030)) in its ldap_user_search_base\n";
        exit(1);
    }
}
