import { expect } from 'chai';
import { link } from '../src/link.js';

describe('link', () => {
  it('shows the title', () => {
    expect(link({ title: ' Home ', slug: 'home' })).to.equal('[Home](/home)');
  });
  it('falls back to the slug', () => {
    expect(link({ slug: 'faq' })).to.equal('[faq](/faq)');
  });
});
