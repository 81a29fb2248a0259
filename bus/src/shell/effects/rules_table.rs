//! The programs whose files follow from one simple rule. Data only.

use super::rules::{Operands, Rule};
use crate::shell::view::Access::{Delete, Read, Write};

const fn rule(names: &'static str, operands: Operands) -> Rule {
    Rule { names, operands, options: &[], recursive: &[] }
}

impl Rule {
    const fn options(
        mut self,
        options: &'static [(&'static str, crate::shell::view::Access)],
    ) -> Self {
        self.options = options;
        self
    }

    const fn recursive(mut self, recursive: &'static [&'static str]) -> Self {
        self.recursive = recursive;
        self
    }
}

pub(super) static RULES: &[Rule] = &[
    // Files
    rule("rm|srm", Operands::All(Delete)).recursive(&["r"]),
    rule("rmdir|unlink", Operands::All(Delete)),
    rule("trash|trash-put|rmtrash", Operands::All(Delete)).recursive(&["*"]),
    rule("touch|truncate", Operands::All(Write)).options(&[("reference", Read)]),
    rule("mkdir|mkfifo|tee|sponge|sudoedit", Operands::All(Write)),
    rule("mknod|fallocate", Operands::All(Write)),
    rule("link", Operands::InputOutput),
    rule("dd", Operands::None).options(&[("if", Read), ("of", Write)]),
    rule("xattr|setfattr", Operands::Paths(Write)).recursive(&["r"]),
    rule("setcap", Operands::Behind(1, Write)),
    rule("rename|prename", Operands::Behind(1, Write)),
    rule("split", Operands::InputOutput),
    rule("csplit", Operands::Script),
    rule("code|codium|cursor|subl|zed|gedit|kate|mate", Operands::All(Write)),
    rule("ed|red|nano|pico|micro|rnano|emacs|emacsclient", Operands::All(Write)),
    // Disks
    rule(
        "mkfs|mkfs.ext2|mkfs.ext3|mkfs.ext4|mkfs.xfs|mkfs.btrfs|mkfs.vfat|mkfs.fat|mkfs.exfat|mkfs.ntfs|mkfs.f2fs|\
mkfs.minix|mkfs.cramfs|mkfs.jfs|mkfs.reiserfs|mke2fs|newfs|mkdosfs|mkntfs|mkswap|wipefs|fdisk|cfdisk|gdisk|cgdisk|\
sfdisk|sgdisk|parted|blkdiscard|hdparm|pvremove|vgremove|lvremove|pvcreate|vgcreate|lvcreate|lvreduce|lvresize|\
mdadm|fsck|e2fsck|fsck.ext4|xfs_repair|debugfs|tune2fs|resize2fs|nvme|cryptsetup|diskutil|zpool",
        Operands::Paths(Write),
    )
    .recursive(&["*"])
    .options(&[("key-file", Read)]),
    // Text
    rule(
        "cat|tac|nl|rev|zcat|bzcat|xzcat|zstdcat|fold|fmt|expand|unexpand|pr|paste|column|glow|mdcat|bat|batcat|\
head|tail|ztail|multitail|less|more|most|zless|zmore|pg|strings|od|hexdump|hd|hexyl|cut",
        Operands::All(Read),
    ),
    rule("base64|base32|basenc", Operands::All(Read)).options(&[("output", Write)]),
    rule("sort", Operands::All(Read)).options(&[("output", Write), ("files0-from", Read)]),
    rule("uniq|xxd", Operands::InputOutput),
    rule("wc|cksum|sum|md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|shasum|md5", Operands::All(Read))
        .options(&[("files0-from", Read)]),
    rule("diff|cmp|comm|sdiff|colordiff|diff3|delta|difft|join", Operands::All(Read))
        .options(&[("output", Write), ("from-file", Read), ("to-file", Read)])
        .recursive(&["r"]),
    rule(
        "ls|dir|vdir|exa|eza|lsd|ll|la|stat|file|readlink|realpath|lsattr|getfacl|namei|df",
        Operands::All(Read),
    )
    .recursive(&["R"]),
    rule("tree|du", Operands::All(Read)).recursive(&["*"]),
    rule("look|test|[|[[|echo|printf|print|tr", Operands::None),
    // Shells and interpreters that take a script; those with options like `-c` are in `editing.rs`.
    rule(".|source", Operands::Script),
    rule("java", Operands::None).options(&[("jar", Read)]),
    rule(
        "gcc|cc|g++|c++|clang|clang++|rustc|ld|as|tcc",
        Operands::All(Read),
    )
    .options(&[("o", Write), ("out-dir", Write)]),
    rule("tsc|swc|esbuild|rollup|babel", Operands::Paths(Read))
        .options(&[("project", Read), ("outDir", Write), ("outFile", Write)]),
    // Build tools
    rule("cmake", Operands::Paths(Read)).options(&[("S", Read), ("B", Write), ("build", Write), ("P", Read)]),
    rule("just", Operands::None).options(&[("justfile", Read)]),
    rule("cargo", Operands::None).options(&[("manifest-path", Read), ("path", Read), ("target-dir", Write)]),
    rule("go", Operands::Paths(Read)).options(&[("o", Write), ("coverprofile", Write)]),
    rule("twine", Operands::All(Read)).options(&[("config-file", Read)]),
    // Keys
    rule("ssh-add", Operands::All(Read)),
    rule("age|rage", Operands::All(Read)).options(&[
        ("output", Write),
        ("identity", Read),
        ("recipients-file", Read),
    ]),
    rule("age-keygen", Operands::None).options(&[("output", Write)]),
    rule("keytool", Operands::None).options(&[("keystore", Write), ("file", Read), ("srckeystore", Read)]),
    // Databases
    rule("pg_restore", Operands::All(Read)).options(&[("file", Write), ("use-list", Read)]),
    rule("initdb|pg_resetwal|pg_upgrade|pg_ctl", Operands::None).options(&[("pgdata", Write), ("log", Write)]),
    // The machine
    rule("at|batch", Operands::None).options(&[("f", Read)]),
    rule("visudo", Operands::None).options(&[("file", Write)]),
    rule("iptables-restore|ip6tables-restore", Operands::All(Read)).options(&[("file", Read)]),
    rule("iptables-save|ip6tables-save", Operands::None).options(&[("file", Write)]),
    rule("nft", Operands::None).options(&[("file", Read)]),
    rule("pfctl", Operands::None).options(&[("f", Read)]),
    rule("sysctl", Operands::None).options(&[("load", Read)]),
    rule("tcpdump|tshark|dumpcap", Operands::None).options(&[("w", Write), ("r", Read), ("F", Read)]),
    rule("launchctl", Operands::Paths(Read)),
    rule("journalctl", Operands::None).options(&[("file", Read), ("directory", Read)]),
    rule("osascript", Operands::Script),
    rule("ansible-playbook", Operands::All(Read))
        .options(&[("inventory", Read), ("private-key", Read), ("vault-password-file", Read)]),
    rule("mail|mailx|sendmail|mutt|msmtp|swaks", Operands::None).options(&[("a", Read), ("A", Read), ("attach", Read)]),
    // Wrappers: what they start is another invocation.
    rule("xargs|parallel", Operands::None).options(&[("arg-file", Read), ("joblog", Write), ("results", Write)]),
    rule("time|strace|ltrace|dtruss|perf|valgrind|gdb|lldb", Operands::None).options(&[("output", Write)]),
    rule("flock", Operands::Script),
    rule("script", Operands::All(Write)).options(&[("log-out", Write), ("log-io", Write), ("log-in", Write)]),
    rule("env", Operands::None),
    rule(
        "sudo|doas|su|runuser|pkexec|timeout|nice|ionice|chrt|taskset|cpulimit|numactl|prlimit|nohup|setsid|command|\
builtin|exec|noglob|nocorrect|coproc|busybox|toybox|winpty|setarch|linux32|linux64|proxychains|proxychains4|\
torsocks|torify|fakeroot|faketime|dbus-run-session|xvfb-run|unbuffer|chronic|ts|caffeinate|rlwrap|gtime|stdbuf|\
watch|chroot|unshare|nsenter|bwrap|firejail|sandbox-exec|systemd-nspawn|capsh|proot|gosu|setpriv|entr|eval|trap|\
direnv|mise|asdf|npx|bunx|pnpx|uvx|systemd-run|tmux|screen",
        Operands::None,
    ),
    // Builtins and programs that use no files of the user.
    rule(
        "cd|pushd|popd|chdir|dirs|pwd|true|false|:|exit|return|break|continue|shift|wait|jobs|fg|bg|disown|times|type|\
which|whereis|sleep|seq|yes|clear|reset|basename|dirname|expr|man|info|help|tput|stty|getopts|logout|suspend|\
mapfile|readarray|sync|factor|cal|uuidgen|logger|wall|write|mesg|export|declare|typeset|local|readonly|unset|set|\
shopt|alias|unalias|umask|ulimit|read|let|hash|enable|bind|complete|setopt|unsetopt|printenv|history|pbcopy|\
pbpaste|xclip|xsel|wl-copy|wl-paste|clip|date|ps|top|htop|uptime|free|vmstat|iostat|who|w|id|groups|whoami|\
hostname|uname|ss|netstat|dmesg|last|lscpu|lsusb|lspci|arch|nproc|tty|logname|kill|pkill|pgrep|killall|shutdown|\
reboot|halt|poweroff|init|telinit|useradd|usermod|userdel|adduser|deluser|groupadd|groupdel|groupmod|passwd|\
chpasswd|chage|iptables|ip6tables|setenforce|service|swapon|hookbus",
        Operands::None,
    ),
];
