exports.add = (a, b) => a - b;
exports.twice = (a) => exports.add(a, a);
