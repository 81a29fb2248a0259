//! Programs that change disks, file systems and mounts.

use crate::shell::programs::spec::{Spec, Sub};

pub(super) const PROGRAMS: &[Spec] = &[
    Spec::new("mkfs")
        .like(
            "mkfs.ext2|mkfs.ext3|mkfs.ext4|mkfs.xfs|mkfs.btrfs|mkfs.vfat|mkfs.fat|mkfs.exfat|mkfs.ntfs|mkfs.f2fs|\
mkfs.minix|mkfs.cramfs|mkfs.jfs|mkfs.reiserfs|mke2fs|newfs|mkdosfs|mkntfs",
        )
        .options(&[
            "-t --type =", "-L =", "-F", "-f", "-b =", "-c", "-i =", "-m =", "-n =", "-N =", "-O =", "-E =", "-U =",
            "-v", "-V", "-q", "-j", "-I =", "-T =",
        ]),
    Spec::new("mkswap").options(&["-L --label =", "-U --uuid =", "-f --force", "-p --pagesize =", "-c --check"]),
    Spec::new("swapon").like("swapoff").options(&[
        "-a --all", "-L =", "-U =", "-p --priority =", "-v --verbose", "-s --summary", "--show [=]",
    ]),
    Spec::new("wipefs").options(&[
        "-a --all", "-f --force", "-n --no-act", "-o --offset =", "-t --types =", "-b --backup", "-q --quiet",
        "-i --noheadings", "-J --json", "-O --output =", "-p --parsable", "--lock [=]",
    ]),
    Spec::new("fdisk").like("cfdisk|gdisk|cgdisk").options(&[
        "-l --list", "-b --sector-size =", "-t --type =", "-u", "-s --getsz", "-w --wipe =", "-W --wipe-partitions =",
        "-o --output =", "-x --list-details",
    ]),
    Spec::new("sfdisk").options(&[
        "-d --dump", "-l --list", "-f --force", "-n --no-act", "-N --partno =", "-a --append", "-b --backup",
        "--delete", "-X --label =", "-w --wipe =", "-W --wipe-partitions =", "-q --quiet", "--no-reread", "-J --json",
        "--part-type", "--disk-id", "-O --backup-file =",
    ]),
    Spec::new("sgdisk").options(&[
        "-Z --zap-all", "-z --zap", "-o --clear", "-n --new =", "-d --delete =", "-t --typecode =", "-p --print",
        "-c --change-name =", "-b --backup =", "-l --load-backup =", "-g --mbrtogpt", "-R --replicate =", "-G --randomize-guids",
    ]),
    Spec::new("parted").options(&["-s --script", "-l --list", "-m --machine", "-a --align =", "-f --fix"]),
    Spec::new("partprobe").options(&["-d --dry-run", "-s --summary"]),
    Spec::new("blkdiscard").options(&[
        "-f --force", "-s --secure", "-z --zeroout", "-v --verbose", "-o --offset =", "-l --length =", "-p --step =",
    ]),
    Spec::new("hdparm").options(&[
        "--security-erase =", "--security-erase-enhanced =", "--security-set-pass =", "--user-master =",
        "--yes-i-know-what-i-am-doing", "--please-destroy-my-drive", "--trim-sector-ranges =", "--write-sector =",
    ]),
    Spec::new("nvme").subs(1, &[Sub::new("format", &["-s --ses =", "-n --namespace-id =", "-f --force", "-l --lbaf ="])]),
    Spec::new("mount").options(&[
        "-t --types =", "-o --options =", "-a --all", "-r --read-only", "-w --rw --read-write", "-B --bind",
        "-R --rbind", "-M --move", "-L --label =", "-U --uuid =", "-n --no-mtab", "-v --verbose", "--make-private",
        "-T --fstab =", "-O --test-opts =", "--source =", "--target =",
    ]),
    Spec::new("umount").options(&[
        "-f --force", "-l --lazy", "-a --all", "-R --recursive", "-t --types =", "-r --read-only", "-v --verbose",
        "-d --detach-loop", "-O --test-opts =",
    ]),
    Spec::new("losetup").options(&[
        "-d --detach", "-D --detach-all", "-f --find", "-a --all", "-o --offset =", "-P --partscan", "-r --read-only",
        "--sizelimit =", "--show", "-j --associated =", "-c --set-capacity",
    ]),
    Spec::new("cryptsetup")
        .options(&[
            "-q --batch-mode", "-d --key-file =", "-c --cipher =", "-s --key-size =", "-h --hash =", "--type =",
            "-y --verify-passphrase", "--header =", "-S --key-slot =", "-v --verbose", "--force-password",
        ])
        .anywhere()
        .subs(1, &[Sub::new("open|luksOpen", &[]), Sub::new("close|luksClose|remove", &[]), Sub::new("erase|luksErase", &[])]),
    Spec::new("diskutil").subs(
        1,
        &[
            Sub::new("eraseDisk|erasedisk", &[]),
            Sub::new("eraseVolume|erasevolume", &[]),
            Sub::new("zeroDisk|zerodisk", &[]),
            Sub::new("secureErase|secureerase", &[]),
            Sub::new("partitionDisk|partitiondisk", &[]),
            Sub::new("apfs deleteVolume", &[]),
            Sub::new("apfs deleteContainer", &[]),
        ],
    ),
    Spec::new("pvremove").like("vgremove|lvremove|pvcreate|vgcreate|lvcreate|lvreduce|lvresize").options(&[
        "-f --force", "-y --yes", "-n --name =", "-L --size =", "-l --extents =", "-v --verbose", "-q --quiet",
        "-t --test", "-S --select =", "-r --resizefs",
    ]),
    Spec::new("mdadm").options(&[
        "-C --create", "-A --assemble", "-S --stop", "--zero-superblock", "-f --fail", "-r --remove", "-a --add",
        "-l --level =", "-n --raid-devices =", "-D --detail", "-c --config =",
    ]),
    Spec::new("zpool").subs(1, &[Sub::new("destroy", &["-f"]), Sub::new("labelclear", &["-f"]), Sub::new("create", &["-f", "-o =", "-O =", "-m =", "-R ="])]),
    Spec::new("zfs").subs(1, &[Sub::new("destroy", &["-r", "-R", "-f", "-n", "-p", "-v", "-d"]), Sub::new("rollback", &["-r", "-R", "-f"])]),
    Spec::new("btrfs").subs(2, &[Sub::new("subvolume delete|sub delete|su de|subvol delete", &["-c --commit-after", "-C --commit-each", "-i --subvolid =", "-v --verbose", "-R --recursive"])]),
    Spec::new("fsck").like("e2fsck|fsck.ext4|xfs_repair|debugfs|tune2fs|resize2fs").options(&[
        "-y", "-n", "-p", "-a", "-f", "-A", "-t =", "-b =", "-c", "-w", "-R =", "-L",
    ]),
    Spec::new("qemu-img").subs(1, &[]),
];
