#!/bin/sh
# Makes the home folder of one user, as a prolog of slurmd (SLURM_JOB_UID) or at a login (pam_exec: PAM_USER).
#
# A user may own a folder on the way, or anything that has the name of a home. So each folder is opened in the one
# before, without following links, and only a folder is given away that root has made with the mark of this program
# (sticky, closed to all others): no user can make one. What is there already stays as it is.
#
# Neither a job nor a login waits for more than 20 seconds or fails because of it: why no home was made is in the
# container's log.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
if ! command -v perl > /dev/null; then
    echo "home folders: this image has no perl, so none is made" >&2
    exit 0
fi
perl - "FOLDER_OF_HOMES" << 'END' || :
use strict;
use warnings;
use Fcntl qw(O_DIRECTORY O_NOFOLLOW O_RDONLY S_ISDIR);

my $MADE_HERE = 01700;
my ($top) = @ARGV;
alarm 20;
umask 0;
# What a session's process writes goes nowhere; the first process of the container has its log.
my $log;
open $log, '>>', '/proc/1/fd/2' or open $log, '>&', \*STDERR;

sub leave {
    my ($why) = @_;
    print {$log} "home folders: $why\n" if $why;
    exit 0;
}

sub is_mounted {
    my ($where) = @_;
    open my $mounts, '<', '/proc/self/mountinfo' or return 0;
    while (<$mounts>) { return 1 if (split ' ')[4] eq $where }
    return 0;
}

# An entry of an open folder: a path that no link on the way can turn elsewhere.
sub below { sprintf '/proc/self/fd/%d/%s', fileno $_[0], $_[1] }

sub folder {
    my ($path) = @_;
    my $found;
    return sysopen($found, $path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) ? $found : undef;
}

# Only in a container, and only where the volume is: a machine has homes of its own.
leave() if !is_mounted($top) || !is_mounted('/etc/hosts');
my @user;
if (defined $ENV{PAM_USER}) {
    leave() if ($ENV{PAM_TYPE} // '') ne 'open_session';
    @user = getpwnam $ENV{PAM_USER};
} elsif (($ENV{SLURM_JOB_UID} // '') =~ /\A[0-9]{1,10}\z/) {
    @user = getpwuid $ENV{SLURM_JOB_UID};
} else {
    leave();
}
leave() if !@user;
my ($uid, $gid, $home) = @user[2, 3, 7];
leave() if $uid == 0 || substr($home, 0, 1 + length $top) ne "$top/";
my @names = grep { $_ ne '' } split m{/}, substr $home, length $top;
leave("$home is no plain path") if !@names || @names > 16 || grep { $_ eq '.' || $_ eq '..' } @names;
my $name = pop @names;

my ($at, $shown) = (folder($top), $top);
leave("$top cannot be opened: $!") if !$at;
for my $one (@names) {
    my $path = below($at, $one);
    $shown .= "/$one";
    if (!lstat $path) {
        leave("$shown is missing, and the folder above it is not root's") if (stat $at)[4] != 0;
        mkdir $path, 0755 or $!{EEXIST} or leave("$shown cannot be made: $!");
    }
    $at = folder($path) or leave("$shown is no folder, or a link: nothing is made in it");
}

my $path = below($at, $name);
my @found = lstat $path;
my $is_ours = 0;
if (@found) {
    # One that was not finished, for instance because its container was stopped, is root's, and has the mark.
    my $unfinished = S_ISDIR($found[2]) && $found[4] == 0 && ($found[2] & 01777) == $MADE_HERE;
    leave(-d $path ? '' : "$home is there, and is no folder") if !$unfinished;
} else {
    $is_ours = mkdir $path, $MADE_HERE;
    $is_ours or $!{EEXIST} or leave("$home cannot be made: $!");
}
my $made = folder($path) or leave("$home is no folder, or a link, and stays as it is");
my @now = stat $made;
leave() if $now[4] == $uid;
leave("$home belongs to user $now[4], and stays as it is: does the server change the owner (root_squash)?")
    if $now[4] != 0 || ($now[2] & 01777) != $MADE_HERE;
chown $uid, $gid, $made or leave("$home cannot be given to its user: $!");

# The rest as the user, who may change everything in there by now.
my $child = fork;
leave("$home is empty: $!") if !defined $child;
if (!$child) {
    $! = 0;
    ($(, $)) = ($gid, "$gid $gid");
    leave("no process of the user can be started: $!") if $!;
    ($<, $>) = ($uid, $uid);
    leave("no process of the user can be started: $!") if $< != $uid || $> != $uid;
    chdir $made or leave("$home cannot be entered: $!");
    chmod 0700, $made;
    umask 022;
    exec 'cp', '-R', '/etc/skel/.', '.' if $is_ours && -d '/etc/skel';
    exit 0;
}
waitpid $child, 0;
print {$log} "home folders: $home was made for $user[0]\n";
END
exit 0
