import { describe, expect, it } from 'vitest'
import type { ResearchEvent } from '../../../src/protocol/event.ts'
import { monitorEvent, runEvent } from '../../../src/protocol/event.ts'
import { compileExpression, Problem, viewOf } from '../../../src/rules/cel/index.ts'
import { finding, found } from './event.ts'

const evaluate = (text: string, event: ResearchEvent = finding()) =>
  compileExpression(text).evaluate(viewOf(event))

const output = { type: 'text', content: 'in prose', basis: [] } as const

describe('functions', () => {
  it.each([
    ['text(data.output)', 'Acme 3 0.5 1 2 3'],
    ['text(data.output.content.list)', '1 2 3'],
    ['text()', 'Acme 3 0.5 1 2 3'],
    ['hosts(data.output)', 2],
    ['hosts()', 2],
    ['domains()', ['example.com', 'paper.co.uk']],
    ["confidence('company')", 'high'],
    ["confidence(data.output, 'count')", 'low'],
    ["size(citations('company'))", 4],
    ["citations('count')", ['https://paper.co.uk/c']],
    ["citations('other')", []],
    ["quoted('company')", true],
    ["quoted('count')", false],
    ["'Acme'.lowerAscii() + '!'", 'acme!'],
    ["'a,b'.split(',').join('-')", 'a-b'],
    ["'abc'.substring(1) + 'abc'.replace('b', 'x')", 'bcaxc'],
    ['size("é🦊")', 2],
  ])('give a value: %s', (text, value) => {
    expect(evaluate(text)).toEqual(value)
  })

  it.each([
    ["confidence('other')", 'the confidence of other'],
    ["quoted('other')", 'data.output.content.other'],
    ['age()', 'time'],
  ])('have no value where the event has none: %s', (text, path) => {
    expect(evaluate(text)).toEqual(new Problem('missing', path))
  })

  it('read the output where the type of the event has it', () => {
    const run = runEvent(
      { run: { run_id: 'r', status: 'completed', modified_at: null }, output } as never,
      'poll',
    )
    const changed = { event_type: 'snapshot', event_id: 'e', changed_output: output }
    expect(evaluate('text()', run)).toBe('in prose')
    expect(evaluate('text()', monitorEvent('m', changed, 'poll'))).toBe('in prose')
    const completion = monitorEvent(
      'm',
      { event_type: 'completion', timestamp: '2026-01-01T00:00:00Z' },
      'poll',
    )
    expect(evaluate('text()', completion)).toEqual(new Problem('missing', 'data.output'))
  })

  it('measure the age by the times of the event, not by the clock', () => {
    const wire = { event_type: 'completion', timestamp: '2026-01-01T00:00:00Z' }
    const event = monitorEvent('m', wire, 'poll', Date.UTC(2026, 0, 1, 0, 1, 30))
    expect(evaluate('age(event)', event)).toBe(90)
    expect(evaluate('age() > 60', event)).toBe(true)
  })

  it('count those who publish below a shared suffix separately, and ignore URLs that are none', () => {
    const urls = [
      'https://one.github.io/a',
      'https://two.github.io/b',
      'https://two.github.io:8443/b',
      'https://EXAMPLE.com./',
      'http://user:secret@www.example.com/',
      'https://192.0.2.1/',
      'https://[2001:db8::1]/',
      'https://localhost/',
      'https://com/',
      'ftp://example.org/',
      'nonsense',
      `https://${'a'.repeat(5_000)}.com/`,
      null,
      7,
    ]
    const basis = [
      { field: 'f', reasoning: '', citations: [...urls.map((url) => ({ url })), null, 'x'] },
      null,
    ]
    const event = monitorEvent(
      'm',
      { event_type: 'event_stream', event_id: 'e', output: { ...output, basis } },
      'poll',
    )
    expect(evaluate('domains()', event)).toEqual([
      '192.0.2.1',
      '[2001:db8::1]',
      'example.com',
      'one.github.io',
      'two.github.io',
    ])
  })

  it('cut a text at 256 kB, and say so', () => {
    const view = found({ long: 'a'.repeat(300_000) })
    expect(compileExpression('size(text(data.output.content.company))').evaluate(view)).toBe(4)
    expect(view.isCut).toBe(false)
    expect(compileExpression('size(text(data.output))').evaluate(view)).toBe(262_144)
    expect(view.isCut).toBe(true)
  })
})
