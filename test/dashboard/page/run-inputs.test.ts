import { describe, expect, it } from 'vitest'
import { readInputs } from '../../../src/dashboard/page/groups/run-inputs.ts'

describe('the inputs of runs', () => {
  it.each([
    ['a line', 'Who leads it?', ['Who leads it?']],
    ['lines, without empty ones', ' one \r\n\n two\n', ['one', 'two']],
    ['an object over lines', '{\n  "company": "A"\n}', [{ company: 'A' }]],
    ['a list', '["one\\ntwo", { "company": "A" }]', ['one\ntwo', { company: 'A' }]],
    ['objects and texts by line', 'one\n{ "company": "A" }', ['one', { company: 'A' }]],
    ['objects by line', '{"a":1}\n{"b":2}', [{ a: 1 }, { b: 2 }]],
    [
      'a field of any name',
      '{"__proto__":{"a":1},"input":2}',
      [JSON.parse('{"__proto__":{"a":1},"input":2}')],
    ],
    ['a text that is JSON of another kind', '42', ['42']],
  ])('are read from %s', (_, text, inputs) => {
    expect(readInputs(text)).toEqual({ inputs })
  })

  it.each([
    ['', 'Write at least one input.'],
    [' \n\t', 'Write at least one input.'],
    ['[]', 'The list has no inputs.'],
    ['["one", ""]', 'Input 2 of the list must be a text that is not empty, or an object.'],
    ['["one", 2, null]', 'Input 2 of the list must be a text that is not empty, or an object.'],
    ['one\n[1]', 'Line 2 must be a text that is not empty, or an object.'],
    ['one\n{"a": }', /^Line 2 is not JSON: .+\.$/],
    ['{"a":1}\n{"b":}', /^Line 2 is not JSON: .+\.$/],
    ['{\n  "a": 1,\n}', /^This is not JSON: .+\.$/],
  ])('are refused with the place of the mistake: %j', (text, problem) => {
    expect(readInputs(text).problem).toMatch(problem)
  })

  it('are at most as many as fit into a request', () => {
    expect(readInputs('one\n'.repeat(1_000)).inputs).toHaveLength(1_000)
    expect(readInputs('one\n'.repeat(1_001)).problem).toMatch(
      /^These are .+ inputs\. At most .+ can be added/,
    )
  })

  it('do not overflow on what is nested deeply', () => {
    expect(readInputs('['.repeat(1_000_000)).problem).toMatch(/JSON/)
  })
})
