//! A program that does nothing: the floor that `hookbus hook` is measured against.

fn main() {}
