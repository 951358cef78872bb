import { describe, expect, it } from 'vitest'
import { ArgumentError } from '../../src/protocol/argument-error.ts'
import { envelope } from '../../src/protocol/event.ts'
import { eventJson } from '../../src/protocol/event-json.ts'

const cyclic: Record<string, unknown> = {}
cyclic['itself'] = cyclic

describe('the JSON of a failure', () => {
  it.each([
    ['a bigint', 1n],
    ['an object that contains itself', cyclic],
    ['a long text', 'x'.repeat(100_000)],
  ])('has the message of an error whose value is %s, and not the value', (_, value) => {
    const error = new ArgumentError('taskGroups', 'ids', value)
    const failed = envelope(
      'source.failed',
      'a',
      '/v1/tasks/groups/a',
      null,
      { error },
      0,
      'stream',
      undefined,
    )
    const json = eventJson(failed)

    expect(JSON.parse(json).data.error).toMatchObject({
      name: 'ArgumentError',
      code: 'argument',
      message: error.message,
    })
    expect(json.length).toBeLessThan(1_000)
  })
})
