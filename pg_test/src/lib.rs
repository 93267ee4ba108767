//! Black-box tests on a live server.
