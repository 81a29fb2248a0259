//! Databases, data platforms and analytics.

use super::super::alphabet::{ALNUM, Alphabet, BASE64, DOTTED, HEX, LOWER_ALNUM, URL_SAFE, UUID};
use super::super::shape::Piece::{Run, Text};
use super::super::shape::{Token, fixed, parts, ranged};
use super::service::{Service, between, exact};

pub(super) const TOKENS: [Token; 28] = [
    ranged("planetscale-token", "pscale_tkn_", DOTTED.and(Alphabet::of("=")), 32, 80),
    ranged("planetscale-oauth-token", "pscale_oauth_", DOTTED.and(Alphabet::of("=")), 32, 80),
    ranged("planetscale-password", "pscale_pw_", DOTTED.and(Alphabet::of("=")), 32, 80),
    parts("databricks-token", "dapi", &[Run(HEX.and(Alphabet::of("gh-")), 32, 40)]),
    ranged("databricks-secret", "dose", HEX, 32, 32),
    ranged("supabase-token", "sbp_", HEX, 40, 64),
    ranged("supabase-secret", "sb_secret_", URL_SAFE, 20, 80),
    ranged("neon-key", "napi_", LOWER_ALNUM, 40, 80),
    ranged("neon-password", "npg_", ALNUM, 10, 40),
    parts("airtable-token", "pat", &[Run(ALNUM, 14, 14), Text("."), Run(HEX, 64, 64)]),
    ranged("clickhouse-key", "4b1d", ALNUM, 38, 38),
    ranged(
        "prisma-key",
        "prisma+postgres://accelerate.prisma-data.net/?api_key=",
        DOTTED,
        20,
        2048,
    ),
    ranged("fauna-key", "fnA", URL_SAFE, 37, 60),
    ranged("astra-token", "AstraCS:", ALNUM.and(Alphabet::of(":")), 60, 120),
    ranged("aiven-password", "AVNS_", URL_SAFE, 16, 40),
    ranged("xata-key", "xau_", ALNUM, 30, 64),
    ranged("posthog-key", "phx_", ALNUM, 32, 64),
    ranged("posthog-project-key", "phc_", ALNUM, 32, 64),
    ranged("contentful-token", "CFPAT-", URL_SAFE, 43, 43),
    ranged("sanity-token", "skE", ALNUM, 140, 200),
    ranged("dbt-token", "dbtc_", URL_SAFE, 30, 80),
    ranged("dbt-user-token", "dbtu_", URL_SAFE, 30, 80),
    ranged("motherduck-token", "motherduck_token=", DOTTED, 60, 2048),
    ranged("elastic-key", "essu_", BASE64, 40, 200),
    parts("cockroach-key", "CCDB1_", &[Run(ALNUM, 22, 22), Text("_"), Run(ALNUM, 40, 40)]),
    fixed("mongodb-service-secret", "mdb_sa_sk_", URL_SAFE, 40),
    ranged("confluent-key", "cflt", ALNUM.and(Alphabet::of("+/")), 60, 60),
    fixed("databento-key", "db-", ALNUM, 29),
];

pub(super) const SERVICES: [Service; 21] = [
    between("elastic-key", "elastic", BASE64, 60, 64),
    exact("algolia-key", "algolia", HEX, 32),
    exact("algolia-key", "algolia", LOWER_ALNUM, 32),
    exact("airtable-key", "airtable", ALNUM, 17),
    exact("contentful-token", "contentful", URL_SAFE, 43),
    exact("mongodb-key", "mongodb", UUID, 36),
    exact("mongodb-key", "mongo_atlas", UUID, 36),
    between("snowflake-password", "snowflake", DOTTED, 12, 64),
    between("redshift-password", "redshift", DOTTED, 12, 64),
    between("influx-token", "influx", URL_SAFE.and(Alphabet::of("=")), 86, 90),
    exact("mixpanel-secret", "mixpanel", HEX, 32),
    exact("amplitude-secret", "amplitude", HEX, 32),
    exact("segment-key", "segment", ALNUM, 32),
    exact("rudder-key", "rudder", ALNUM, 27),
    between("mapbox-key", "mapbox", DOTTED, 80, 120),
    exact("opensearch-key", "opensearch", HEX, 32),
    between("meilisearch-key", "meili", ALNUM, 32, 64),
    exact("typesense-key", "typesense", ALNUM, 32),
    exact("firebase-secret", "firebase", ALNUM, 40),
    between("tinybird-token", "tinybird", DOTTED, 60, 400),
    exact("fivetran-secret", "fivetran", ALNUM, 32),
];
