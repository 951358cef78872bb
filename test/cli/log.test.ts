import { describe, expect, it } from 'vitest'
import { logLine } from '../../src/cli/log.ts'

describe('the log on a terminal', () => {
  it('is a line of text with all fields', () => {
    const entry = {
      level: 'warn',
      time: 't',
      source: '/v1/monitors/m',
      attempt: 2,
      msg: 'connection failed, reconnecting',
    }

    expect(logLine(JSON.stringify(entry))).toBe(
      'warn: connection failed, reconnecting (source: /v1/monitors/m, attempt: 2)',
    )
    expect(logLine(JSON.stringify({ level: 'debug', time: 't', msg: 'closing' }))).toBe('debug: closing')
  })

  it('has escapes in place of control characters', () => {
    expect(logLine(JSON.stringify({ level: 'warn', msg: 'a\u001B[2Jb\nc' }))).toBe('warn: a\\u001b[2Jb c')
  })
})
