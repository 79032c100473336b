/** Preloaded into the service: the name of the stand-in provider is this machine. */
const dns = require('node:dns');
const { syncBuiltinESMExports } = require('node:module');

const NAME = process.env.BENCH_PROVIDER_NAME;
const { lookup } = dns;

dns.lookup = (name, options, callback) =>
  lookup(name === NAME ? '127.0.0.1' : name, options, callback);
syncBuiltinESMExports();
