//! The programs, by subject. Data only.

mod archives;
mod cloud;
mod containers;
mod databases;
mod disks;
mod files;
mod git;
mod languages;
mod network;
mod packages;
mod secrets;
mod system;
mod text;
mod wrappers;

use super::spec::Spec;

/// All of them.
pub(super) static ALL: [&[Spec]; 14] = [
    archives::PROGRAMS,
    cloud::PROGRAMS,
    containers::PROGRAMS,
    databases::PROGRAMS,
    disks::PROGRAMS,
    files::PROGRAMS,
    git::PROGRAMS,
    languages::PROGRAMS,
    network::PROGRAMS,
    packages::PROGRAMS,
    secrets::PROGRAMS,
    system::PROGRAMS,
    text::PROGRAMS,
    wrappers::PROGRAMS,
];
