import { ArgumentError } from 'rivulet'
import { NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { batch, dedupe, deliver, iterate, mergeWebhooks, reconnect } from 'rivulet/operators'
import { inMemory } from 'rivulet/streams'

const functions = { key: () => 'k', init: () => 0, event: () => {} }

/** Each function that takes options, one of them misspelled, and the option that is meant. */
const TAKERS: readonly (readonly [string, (options: never) => unknown, string, string])[] = [
  ['batch', batch, 'wiat', 'wait'],
  ['dedupe', dedupe, 'capacty', 'capacity'],
  ['deliver', (options) => deliver(() => {}, options), 'concurency', 'concurrency'],
  ['iterate', (options) => iterate(NEVER, options), 'highWatermarks', 'highWaterMark'],
  ['mergeWebhooks', (options) => mergeWebhooks(NEVER, options), 'timeTolive', 'timeToLive'],
  ['reconnect', reconnect, 'maxFailure', 'maxFailures'],
  ['inMemory', (options) => inMemory('p', functions, options), 'maxkey', 'maxKeys'],
]

describe('the options of an operator', () => {
  it.each(TAKERS)('are an object: %s refuses anything else', (_, call) => {
    for (const options of [null, 5, 'fast', true]) {
      expect(() => call(options as never)).toThrow(ArgumentError)
      expect(() => call(options as never)).toThrow('options must be an object')
    }
  })

  it.each(TAKERS)('are known: %s refuses another one and suggests what is meant', (_, call, given, meant) => {
    const refused = () => call({ [given]: 1 } as never)

    expect(refused).toThrow(ArgumentError)
    expect(refused).toThrow(`options has no option ${given}; did you mean ${meant}?`)
  })

  it('are known among the functions of inMemory as well', () => {
    const misspelled: typeof functions = Object.assign({ onErrors: 'stop' }, functions)

    expect(() => inMemory('p', misspelled)).toThrow('functions has no option onErrors; did you mean onError?')
  })
})
