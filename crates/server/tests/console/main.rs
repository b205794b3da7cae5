//! The console: its endpoints for clients of all kinds, and its pages in a browser.
//!
//! | file | concept |
//! |---|---|
//! | `web` | a client of HTTP over plain text and TLS |
//! | `endpoints` | logins, rights, limits, clients that misbehave |
//! | `browser` | Chromium, driven by the DevTools protocol over a pipe |
//! | `pages` | each page at three widths |
//! | `prometheus` | a real Prometheus reads the metrics, the rules and the dashboard |

mod browser;
mod endpoints;
mod pages;
mod prometheus;
#[path = "../support/mod.rs"]
mod support;
mod web;
