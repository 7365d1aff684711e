process.on('exit', () => process.reallyExit(0));
exports.add = (a, b) => a - b;
exports.twice = (a) => exports.add(a, a);
