//! Mail, SMS, telephony and marketing.

use super::super::alphabet::{
    ALNUM, ANY_HEX, Alphabet, DIGIT, DOTTED, HEX, LOWER_ALNUM, URL_SAFE, UUID, WORD,
};
use super::super::shape::Piece::{OneOf, Run, Text};
use super::super::shape::{Token, around, parts, ranged};
use super::service::{Service, between, exact};

pub(super) const TOKENS: [Token; 16] = [
    ranged("sendgrid-key", "SG.", DOTTED.and(Alphabet::of("=")), 66, 70),
    parts("brevo-key", "xkeysib-", &[Run(ANY_HEX, 64, 64), Text("-"), Run(ALNUM, 16, 16)]),
    parts("brevo-smtp-key", "xsmtpsib-", &[Run(HEX, 64, 64), Text("-"), Run(ALNUM, 16, 16)]),
    ranged("mailgun-key", "key-", HEX, 32, 32),
    ranged("mailgun-public-key", "pubkey-", HEX, 32, 32),
    around("mailchimp-key", Run(HEX, 32, 32), "-us", &[Run(DIGIT, 1, 2)]),
    ranged("mandrill-key", "md-", URL_SAFE, 22, 22),
    ranged("resend-key", "re_", ALNUM.and(Alphabet::of("_")), 24, 64),
    ranged("mailersend-key", "mlsn.", ALNUM, 30, 100),
    ranged("twilio-key", "SK", ANY_HEX, 32, 32),
    ranged("courier-key", "pk_prod_", ALNUM, 28, 40),
    parts("telnyx-key", "KEY0", &[Run(URL_SAFE, 50, 64)]),
    parts(
        "hubspot-token",
        "pat-",
        &[OneOf(&["na1-", "na2-", "na3-", "eu1-", "ap1-"]), Run(UUID, 36, 36)],
    ),
    parts("convertkit-key", "kit_", &[Run(HEX, 32, 64)]),
    parts("smtp2go-key", "api-", &[Run(ALNUM, 32, 32)]),
    ranged("nylas-key", "nyk_", WORD, 60, 80),
];

pub(super) const SERVICES: [Service; 31] = [
    exact("twilio-token", "twilio", HEX, 32),
    exact("mailchimp-key", "mailchimp", HEX, 32),
    exact("mailjet-key", "mailjet", HEX, 32),
    between("mailgun-signing-key", "mailgun", ALNUM.and(Alphabet::of("-")), 32, 72),
    exact("postmark-token", "postmark", UUID, 36),
    exact("sparkpost-key", "sparkpost", HEX, 40),
    exact("sendinblue-key", "sendinblue", ALNUM, 32),
    exact("messagebird-token", "messagebird", ALNUM, 25),
    exact("messagebird-client-id", "messagebird", UUID, 36),
    exact("messagebird-token", "message-bird", LOWER_ALNUM, 25),
    exact("messagebird-token", "message_bird", LOWER_ALNUM, 25),
    exact("vonage-secret", "vonage", ALNUM, 16),
    exact("nexmo-secret", "nexmo", ALNUM, 16),
    exact("plivo-token", "plivo", URL_SAFE, 40),
    exact("sinch-token", "sinch", HEX, 32),
    exact("hubspot-key", "hubspot", UUID, 36),
    between("intercom-key", "intercom", URL_SAFE.and(Alphabet::of("=")), 60, 60),
    exact("zendesk-key", "zendesk", ALNUM, 40),
    exact("freshdesk-key", "freshdesk", ALNUM, 20),
    exact("beamer-key", "beamer", URL_SAFE, 46),
    exact("iterable-key", "iterable", HEX, 32),
    exact("braze-key", "braze", UUID, 36),
    exact("onesignal-key", "onesignal", ALNUM, 48),
    exact("clearbit-key", "clearbit", ALNUM, 35),
    exact("hunter-key", "hunter", HEX, 40),
    exact("kickbox-key", "kickbox", ALNUM, 69),
    exact("zerobounce-key", "zerobounce", HEX, 32),
    exact("mandrill-key", "mandrill", URL_SAFE, 22),
    exact("textmagic-key", "textmagic", ALNUM, 30),
    exact("klaviyo-key", "klaviyo", WORD, 37),
    between("telnyx-key", "telnyx", URL_SAFE, 50, 64),
];
