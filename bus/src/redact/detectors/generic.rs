//! Forms that are not of one service: JWTs, hashes of passwords, keys of common programs.

use super::super::alphabet::{ALNUM, Alphabet, BASE64, DIGIT, HEX, URL_SAFE};
use super::super::shape::Piece::{OneOf, Run, Text};
use super::super::shape::{Token, parts, ranged};

/// The alphabet of `crypt(3)`.
const CRYPT: Alphabet = ALNUM.and(Alphabet::of("./"));
const ARGON: Alphabet = CRYPT.and(Alphabet::of("+=,$"));

pub(super) const TOKENS: [Token; 22] = [
    parts(
        "jwt",
        "eyJ",
        &[
            Run(URL_SAFE, 12, 4096),
            Text(".eyJ"),
            Run(URL_SAFE, 8, 16384),
            Text("."),
            Run(URL_SAFE, 0, 8192),
        ],
    ),
    parts(
        "jwe",
        "eyJ",
        &[
            Run(URL_SAFE, 12, 4096),
            Text("."),
            Run(URL_SAFE, 0, 4096),
            Text("."),
            Run(URL_SAFE, 12, 64),
            Text("."),
            Run(URL_SAFE, 8, 16384),
            Text("."),
            Run(URL_SAFE, 16, 64),
        ],
    ),
    parts("jwt-base64", "ZXlK", &[Run(BASE64.and(Alphabet::of("_-")), 80, 16384)]),
    parts(
        "django-session",
        ".eJ",
        &[
            Run(URL_SAFE, 30, 8192),
            Text(":"),
            Run(URL_SAFE, 6, 8),
            Text(":"),
            Run(URL_SAFE, 27, 43),
        ],
    ),
    parts("password-hash", "$2a$", &[Run(DIGIT, 2, 2), Text("$"), Run(CRYPT, 53, 53)]),
    parts("password-hash", "$2b$", &[Run(DIGIT, 2, 2), Text("$"), Run(CRYPT, 53, 53)]),
    parts("password-hash", "$2y$", &[Run(DIGIT, 2, 2), Text("$"), Run(CRYPT, 53, 53)]),
    parts("password-hash", "$argon2", &[OneOf(&["id$", "i$", "d$"]), Run(ARGON, 40, 300)]),
    parts("password-hash", "$6$", &[Run(CRYPT.and(Alphabet::of("=$")), 86, 140)]),
    parts("password-hash", "$5$", &[Run(CRYPT.and(Alphabet::of("=$")), 43, 100)]),
    parts("password-hash", "$y$", &[Run(CRYPT.and(Alphabet::of("$")), 43, 140)]),
    parts("password-hash", "$1$", &[Run(CRYPT, 1, 8), Text("$"), Run(CRYPT, 22, 22)]),
    parts("password-hash", "$apr1$", &[Run(CRYPT, 1, 8), Text("$"), Run(CRYPT, 22, 22)]),
    parts(
        "password-hash",
        "pbkdf2_sha256$",
        &[Run(DIGIT, 4, 8), Text("$"), Run(ALNUM, 8, 40), Text("$"), Run(BASE64, 40, 48)],
    ),
    ranged("laravel-app-key", "APP_KEY=base64:", BASE64, 43, 44),
    parts("nats-seed", "SUA", &[Run(ALNUM, 55, 55)]),
    parts("nats-seed", "SAA", &[Run(ALNUM, 55, 55)]),
    parts("nats-seed", "SOA", &[Run(ALNUM, 55, 55)]),
    ranged("minisign-key", "RWRTY0Iy", BASE64, 200, 240),
    parts(
        "ansible-vault",
        "$ANSIBLE_VAULT;",
        &[
            Run(ALNUM.and(Alphabet::of(".;")), 8, 30),
            Text("\n"),
            Run(DIGIT.and(Alphabet::of("\n ")), 80, 65536),
        ],
    ),
    parts("rails-credentials", "secret_key_base: ", &[Run(HEX, 64, 160)]),
    ranged("masked-value", "::add-mask::", URL_SAFE.and(Alphabet::of("+/=.~!@%")), 4, 400),
];
