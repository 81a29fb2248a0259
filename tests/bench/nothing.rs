//! A program that does nothing, to compare `hookbus hook` with.

fn main() {}
