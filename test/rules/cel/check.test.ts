import { describe, expect, expectTypeOf, it } from 'vitest'
import { DATA_SHAPES, type DataShapes } from '../../../src/rules/cel/event-shape.ts'
import { compileExpression, ExpressionError, type ExpressionScope } from '../../../src/rules/cel/index.ts'

const finding: ExpressionScope = { types: new Set(['monitor.event_stream']), allowChanged: true }

/** The problems, each as its message, and the part of the text that it points at. */
function problems(text: string, scope: ExpressionScope = finding): readonly (readonly [string, string])[] {
  try {
    compileExpression(text, scope)
    return []
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    return error.problems.map(({ message, offset, length }) => [text.slice(offset, offset + length), message])
  }
}

describe('the checker', () => {
  it.each([
    ['data.outputt.type', 'outputt', 'did you mean `output`?'],
    ['data["outputt"].type', '"outputt"', 'did you mean `output`?'],
    ['data . output . typ', 'typ', 'did you mean `type`?'],
    ['has(data.output.typ)', 'typ', 'did you mean `type`?'],
    ['data.output.basis[0].citations[0].urls', 'urls', 'did you mean `url`?'],
    ['data.output.basis.exists(b, b.confidenc == "high")', 'confidenc', 'did you mean `confidence`?'],
    ['data.output.basis.filter(b, true)[0].feld', 'feld', 'did you mean `field`?'],
    ['data.output.basis.field', 'field', 'write `[0]` before it'],
    ['data.output.type.name', 'name', 'has no fields'],
    ['data.timestamp', 'timestamp', 'There is no field `timestamp` in `monitor.event_stream`'],
    ['sourc == ""', 'sourc', 'did you mean `source`?'],
    ['output.type', 'output', 'write `data.output`'],
    ['hosts > 1', 'hosts', 'write `hosts(…)`'],
    ['hots(data.output)', 'hots', 'did you mean `hosts`?'],
    ['data.output.hosts()', 'hosts', 'write `hosts(…)` around it'],
    ['contains("a")', 'contains', 'after a value'],
    ['source.contain("a")', 'contain', 'did you mean `contains`?'],
    ['source.exists(x)', 'exists', 'takes a name and an expression'],
    ['size()', 'size', 'takes 1 argument, and here it has 0'],
    ['source.contains()', 'contains', 'takes 1 argument, and here it has 0'],
    ['toString', 'toString', 'There is no name'],
    ['constructor(1)', 'constructor', 'There is no function'],
    ["type == 'monitor.eror'", "'monitor.eror'", "did you mean 'monitor.error'?"],
    ["'monitor.eror' != type", "'monitor.eror'", "did you mean 'monitor.error'?"],
    ["type in ['monitor.event_stream', 'eror']", "'eror'", "did you mean 'error'?"],
    ["type == 'monitor.error'", "'monitor.error'", 'add it to `on`'],
    ["source.matches('(a')", "'(a'", 'no regular expression'],
    ["source.matches('(a{100}){100}')", "'(a{100}){100}'", 'no regular expression'],
    ['source.matches(id)', 'i', 'written as a text'],
    ['[1].map(a, [1].map(b, [1].map(c, c)))', '.', 'at most 2 deep'],
    ['google.protobuf.Duration{seconds: 1}', 'g', 'Messages cannot be made here'],
    ['changed(changed(id))', 'changed', 'within `changed`'],
    ['[1].exists(x, changed(x))', 'changed', 'within a macro'],
    ['age(data)', 'age', 'write `age(event)`'],
    ['source.toLowerCase() == ""', 'toLowerCase', 'write `….lowerAscii()`'],
    ['source.any(b, b == "")', 'any', 'write `….exists(x, …)`'],
    ['len(source) > 1', 'len', 'write `size(…)`'],
    ['id == undefined', 'undefined', 'write `null`'],
    ["received > timestamp('2026-01-01T00:00:00Z')", 'r', 'write `timestamp(…)` around the text'],
    [
      "timestamp(received) > ('2026' + id) || timestamp(id) > '2026'",
      "'",
      'write `timestamp(…)` around the text',
    ],
  ])('refuses %s, and points at %s', (text, part, message) => {
    expect(problems(text)).toEqual([[part, expect.stringContaining(message)]])
  })

  it.each([
    ['', '', 'Write an expression'],
    ['source = id', '=', 'write `==`'],
    ['source and id', 'and', 'write `&&`'],
    ['source === id', '==', 'CEL compares with `==` alone'],
    ["source =~ 'a'", '=', "write `….matches('…')`"],
    ["source contains 'a'", 'contains', 'write `….contains(…)`'],
    ['source == ', '==', 'after it'],
    ['(source', '(', 'is not closed'],
    ['source)', ')', 'closes nothing'],
    ["source == 'a", "'", 'not closed'],
    ['data.?output', '.', 'not expected'],
    [`${'('.repeat(40)}1${')'.repeat(40)}`, '(', 'at most 32 deep'],
    ['1'.repeat(4_001), '1', 'at most 4000 characters'],
    [`1${'+1'.repeat(150)}`, '+', 'too deep'],
    [`data${'.a'.repeat(1_900)}`, '.', 'too deep'],
  ])('refuses what is no CEL, or too much of it: %.20s', (text, part, message) => {
    expect(problems(text)[0]).toEqual([part, expect.stringContaining(message)])
  })

  it('reports all problems, in the order of the text', () => {
    expect(problems('data.x == 1 && sourc == 2').map(([part]) => part)).toEqual(['x', 'sourc'])
  })

  it('permits a field that one of the types has', () => {
    expect(problems('data.timestamp', { types: new Set(['monitor.event_stream', 'monitor.error']) })).toEqual(
      [],
    )
    expect(problems('data.timestamp', {})).toEqual([])
    expect(problems('data.timestam', {})).toHaveLength(1)
  })

  it.each(['data.output.content.anything.at.all', 'data.output.beta_fields.x[0].y'])(
    'leaves open: %s',
    (text) => {
      expect(problems(text)).toEqual([])
    },
  )

  it('leaves the data of an unknown event open, where a rule reads them', () => {
    expect(problems('data.anything', { types: new Set(['unknown']) })).toEqual([])
  })

  it('refuses a result that a condition or a text cannot have', () => {
    expect(problems('hosts(data.output)', { result: 'bool' })).toHaveLength(1)
    expect(problems("true ? 'a' : 'b'", { result: 'bool' })).toHaveLength(1)
    expect(problems('domains(data.output)', { result: 'text' })).toHaveLength(1)
    expect(problems('data.output.content', { result: 'bool' })).toEqual([])
    expect(problems('data.output.basis.exists(b, true)', { result: 'bool' })).toEqual([])
  })

  it('permits changed() in conditions only, three times', () => {
    expect(problems('changed(id)', {})).toEqual([['changed', expect.stringContaining('conditions only')]])
    expect(
      problems(['id', 'via', 'type', 'time'].map((field) => `changed(${field})`).join(' && ')),
    ).toHaveLength(1)
  })

  it('knows each field of the event types, and no other', () => {
    expectTypeOf(DATA_SHAPES).toEqualTypeOf<DataShapes>()
  })

  it('takes types that are not ours as they are', () => {
    expect(problems("type == 'order.late'", {})).toEqual([])
    const own: ReadonlySet<string> = new Set(['order.late'])
    expect(problems('data.any.field == 1', { types: own as ReadonlySet<never> })).toEqual([])
  })
})
