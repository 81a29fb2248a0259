//! Business software: sales, documents, human resources, devices.

use super::super::alphabet::{ALNUM, Alphabet, DOTTED, HEX, LOWER_ALNUM, URL_SAFE, UUID, WORD};
use super::super::shape::Piece::{Run, Text};
use super::super::shape::{Token, around, parts, ranged};
use super::service::{Service, between, exact};

pub(super) const TOKENS: [Token; 7] = [
    around("salesforce-session", Text("00D"), "!AQ", &[Run(DOTTED, 20, 200)]),
    parts("salesforce-refresh-token", "5Aep861", &[Run(DOTTED, 60, 120)]),
    parts("salesforce-key", "3MVG9", &[Run(DOTTED, 70, 90)]),
    ranged("samsara-token", "samsara_api_", ALNUM, 30, 40),
    ranged("retool-token", "retool_01", WORD, 24, 64),
    ranged("zuplo-key", "zpka_", WORD, 30, 80),
    ranged("plane-key", "plane_api_", HEX, 32, 64),
];

pub(super) const SERVICES: [Service; 32] = [
    between("salesforce-secret", "salesforce", ALNUM, 64, 64),
    exact("todoist-token", "todoist", HEX, 40),
    exact("pipedrive-token", "pipedrive", HEX, 40),
    exact("zoho-secret", "zoho", HEX, 42),
    exact("airtable-secret", "airtable", HEX, 64),
    exact("smartsheet-token", "smartsheet", ALNUM, 37),
    exact("bamboohr-key", "bamboohr", HEX, 40),
    exact("workday-secret", "workday", ALNUM, 50),
    exact("docusign-key", "docusign", UUID, 36),
    exact("hellosign-key", "hellosign", HEX, 64),
    exact("pandadoc-key", "pandadoc", HEX, 40),
    exact("toggl-token", "toggl", HEX, 32),
    exact("harvest-token", "harvest", DOTTED, 97),
    exact("close-key", "closecrm", DOTTED, 50),
    exact("copper-key", "copper", HEX, 32),
    exact("front-token", "frontapp", DOTTED, 188),
    exact("helpscout-secret", "helpscout", ALNUM, 32),
    exact("drift-token", "drift", ALNUM, 32),
    exact("apollo-key", "apollo", URL_SAFE, 22),
    exact("wistia-token", "wistia", HEX, 64),
    exact("box-secret", "box_client", ALNUM, 32),
    exact("evernote-secret", "evernote", HEX, 16),
    exact("lokalise-token", "lokalise", HEX, 40),
    exact("crowdin-token", "crowdin", HEX, 80),
    exact("transifex-token", "transifex", LOWER_ALNUM.and(Alphabet::of("/")), 42),
    exact("deepl-key", "deepl", UUID.and(Alphabet::of(":fx")), 39),
    exact("deepl-key", "deepl", UUID, 36),
    exact("particle-token", "particle", HEX, 40),
    exact("tuya-secret", "tuya", HEX, 32),
    exact("nest-token", "nest_", DOTTED, 40),
    between("freemius-secret", "freemius", URL_SAFE, 32, 32),
    exact("codemagic-token", "codemagic", URL_SAFE, 43),
];
