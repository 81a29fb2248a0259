//! Registries of packages and images.

use super::super::alphabet::{ALNUM, Alphabet, BASE64, HEX, LOWER_ALNUM, URL_SAFE, UUID};
use super::super::shape::{Token, fixed, ranged};
use super::service::{Service, between, exact};

pub(super) const TOKENS: [Token; 16] = [
    ranged("npm-token", "npm_", ALNUM, 36, 64),
    ranged("pypi-token", "pypi-AgEIcHlwaS5vcmc", URL_SAFE, 50, 1000),
    ranged("testpypi-token", "pypi-AgENdGVzdC5weXBpLm9yZw", URL_SAFE, 50, 1000),
    fixed("rubygems-key", "rubygems_", HEX, 48),
    ranged("crates-io-token", "cio", ALNUM, 32, 32),
    fixed("nuget-key", "oy2", LOWER_ALNUM, 43),
    fixed("clojars-token", "CLOJARS_", ALNUM, 60),
    ranged("dockerhub-token", "dckr_pat_", URL_SAFE, 27, 40),
    ranged("dockerhub-org-token", "dckr_oat_", URL_SAFE, 27, 40),
    ranged("artifactory-key", "AKCp", ALNUM, 60, 80),
    ranged("artifactory-token", "cmVmd", ALNUM, 55, 80),
    fixed("artifactory-password", "AP5", ALNUM, 70),
    ranged("jsr-token", "jsrp_", ALNUM, 40, 60),
    ranged("jsr-device-token", "jsrd_", ALNUM, 40, 60),
    ranged("deno-token", "ddp_", ALNUM, 36, 40),
    ranged("deno-org-token", "ddo_", ALNUM, 36, 40),
];

pub(super) const SERVICES: [Service; 14] = [
    between("jfrog-key", "jfrog", ALNUM, 73, 73),
    between("jfrog-token", "jfrog", ALNUM, 64, 64),
    between("artifactory-key", "artifactory", ALNUM, 73, 73),
    between("bintray-key", "bintray", HEX, 40, 40),
    exact("npm-token", "npm", UUID, 36),
    exact("packagecloud-token", "packagecloud", HEX, 48),
    exact("packagist-token", "packagist", URL_SAFE, 20),
    exact("cargo-token", "cargo", ALNUM, 32),
    exact("nuget-key", "nuget", LOWER_ALNUM, 46),
    exact("quay-token", "quay", ALNUM, 40),
    exact("dockerhub-token", "docker", UUID, 36),
    exact("cloudsmith-key", "cloudsmith", HEX, 40),
    exact("sonatype-token", "sonatype", BASE64.and(Alphabet::of("_-")), 44),
    exact("gradle-key", "gradle", LOWER_ALNUM, 48),
];
