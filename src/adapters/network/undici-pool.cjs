// Exports the parts of undici that svc uses. undici's main file also loads fetch, caches, mocks and WebSocket, which
// takes about 45 ms of every start (measured: 280 ms instead of 235 ms to the first served request). The paths are
// relative, because the bundler replaces the name 'undici' by this file.
module.exports = {
  Pool: require('../../../node_modules/undici/lib/dispatcher/pool.js'),
  buildConnector: require('../../../node_modules/undici/lib/core/connect.js'),
  errors: require('../../../node_modules/undici/lib/core/errors.js'),
};
