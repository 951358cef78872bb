import { ArgumentError } from 'rivulet'
import { NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { dedupe, deliver, iterate, mergeWebhooks, reconnect } from 'rivulet/operators'

const OPERATORS: Readonly<Record<string, (config: never) => unknown>> = {
  dedupe,
  deliver: (config) => deliver(() => {}, config),
  iterate: (config) => iterate(NEVER, config),
  mergeWebhooks: (config) => mergeWebhooks(NEVER, config),
  reconnect,
}

describe('the config of an operator', () => {
  it.each(Object.keys(OPERATORS))('is an object: %s refuses anything else', (operator) => {
    for (const config of [null, 5, 'fast', true]) {
      const call = () => OPERATORS[operator]?.(config as never)
      expect(call).toThrow(ArgumentError)
      expect(call).toThrow('config must be an object')
    }
  })
})
