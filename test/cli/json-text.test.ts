import { expect, it } from 'vitest'
import { jsonText } from '../../src/cli/json-text.ts'

const deep: unknown = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000))

it('is the JSON of the value', () => {
  expect(jsonText({ id: 'a', data: [1, null, { b: 'c' }] })).toBe('{"id":"a","data":[1,null,{"b":"c"}]}')
})

it('replaces only fields that are nested too deeply', () => {
  expect(JSON.parse(jsonText({ id: 'a', type: 'unknown', data: deep }))).toEqual({
    id: 'a',
    type: 'unknown',
    data: expect.stringContaining('too deeply'),
  })
  expect(jsonText(deep)).toContain('too deeply')
})
