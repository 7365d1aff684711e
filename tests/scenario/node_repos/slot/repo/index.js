module.exports = require('./lib/slots');
