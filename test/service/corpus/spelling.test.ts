import { describe, expect, it } from 'vitest'
import { otherSpelling } from '../../../src/service/corpus/spelling.ts'

describe('the other spelling', () => {
  it.each([
    ['colour', 'color'],
    ['colours', 'colors'],
    ['colourful', 'colorful'],
    ['behavioural', 'behavioral'],
    ['favourites', 'favorites'],
    ['neighbouring', 'neighboring'],
    ['centre', 'center'],
    ['centred', 'centered'],
    ['metres', 'meters'],
    ['licence', 'license'],
    ['defence', 'defense'],
    ['serialise', 'serialize'],
    ['normalisation', 'normalization'],
    ['analyser', 'analyzer'],
    ['cancelled', 'canceled'],
    ['labelling', 'labeling'],
    ['grey', 'gray'],
  ])('of %s is %s, and the reverse', (british, american) => {
    expect(otherSpelling(british)).toBe(american)
    expect(otherSpelling(american)).toBe(british)
  })

  it.each([
    'four',
    'hour',
    'source',
    'editor',
    'monitor',
    'parameter',
    'filter',
    'size',
    'rise',
    'called',
    'filling',
    'server',
    '日本',
  ])('of %s is none', (word) => expect(otherSpelling(word)).toBeUndefined())
})
