'use strict';
// node_modules cannot be written here. Vite copes with that, but only where it is told that it may not.

const { promises } = require('node:fs');

const { mkdir } = promises;
promises.mkdir = async function make(path, ...options) {
  try {
    return await mkdir.call(promises, path, ...options);
  } catch (error) {
    if (/[\\/]node_modules[\\/]/.test(String(path))) error.code = 'EACCES';
    throw error;
  }
};
