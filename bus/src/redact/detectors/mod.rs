//! The tables of what services issue, one file per family: tokens that are recognised by themselves, and secrets without a
//! form of their own, which count beside the name of their service. Written from the services' public descriptions.

mod ai;
mod business;
mod chat;
mod clouds;
mod code;
mod data;
mod generic;
mod mail;
mod monitoring;
mod packages;
mod payment;
mod platforms;
mod service;

pub(super) use service::Service;

use super::shape::Token;

/// All tokens, by family.
pub(super) const TOKENS: [&[Token]; 12] = [
    &ai::TOKENS,
    &business::TOKENS,
    &chat::TOKENS,
    &clouds::TOKENS,
    &code::TOKENS,
    &data::TOKENS,
    &generic::TOKENS,
    &mail::TOKENS,
    &monitoring::TOKENS,
    &packages::TOKENS,
    &payment::TOKENS,
    &platforms::TOKENS,
];

/// All secrets that need the name of their service beside them, by family.
pub(super) const SERVICES: [&[Service]; 11] = [
    &ai::SERVICES,
    &business::SERVICES,
    &chat::SERVICES,
    &clouds::SERVICES,
    &code::SERVICES,
    &data::SERVICES,
    &mail::SERVICES,
    &monitoring::SERVICES,
    &packages::SERVICES,
    &payment::SERVICES,
    &platforms::SERVICES,
];
