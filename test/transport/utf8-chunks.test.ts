import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { Utf8Chunks } from '../../src/transport/utf8-chunks.ts'

it('holds back nothing but a character that is not complete', () => {
  const characters = new Utf8Chunks()
  const bytes = new TextEncoder().encode('aß€🌊')

  expect(characters.decode(bytes)).toBe('aß€🌊')
  expect(characters.decode(bytes.subarray(0, -1))).toBe('aß€')
})

it('decodes any bytes, valid or not, as they would be decoded in one piece', () => {
  const character = fc
    .constantFrom(...'aß€🌊\uFEFF')
    .map((text) => Array.from(new TextEncoder().encode(text)))
  const broken = fc.uint8Array({ maxLength: 3 }).map((bytes) => Array.from(bytes))
  const pieces = fc.array(fc.oneof(character, broken), { maxLength: 30 })
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(), { maxLength: 12 }), (given, at) => {
      const bytes = Uint8Array.from(given.flat())
      const borders = [0, ...at.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
        (a, b) => a - b,
      )
      const characters = new Utf8Chunks()
      const told = borders.slice(1).map((border, index) => {
        const chunk = Buffer.from(bytes.slice(borders[index], border))
        const text = characters.decode(chunk)
        // Whoever gave it may use it again.
        chunk.fill(0x21)
        return text
      })
      expect(told.join('') + characters.end()).toBe(
        new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes),
      )
    }),
    { numRuns: 2_000 },
  )
})
