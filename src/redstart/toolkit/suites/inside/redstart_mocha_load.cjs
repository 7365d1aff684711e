'use strict';
// Mocha gives up when one of its files cannot be loaded. With this, that file is red and the others are run.

const broken = [];
const name = Object.keys(require.cache).find((one) => /[\\/]mocha[\\/]lib[\\/]mocha\.js$/.test(one));
const Mocha = name && require.cache[name].exports;

if (Mocha) {
  const load = Mocha.prototype.loadFilesAsync;
  Mocha.prototype.loadFilesAsync = async function each(...options) {
    const { files } = this;
    for (const file of files) {
      this.files = [file];
      try {
        await load.apply(this, options);
      } catch (error) {
        broken.push({ file, error });
      }
    }
    this.files = files;
  };
}

module.exports = { broken };
