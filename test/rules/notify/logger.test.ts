import { pino } from 'pino'
import { notifyLogger } from 'rivulet/rules'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { alertLog, episodeOf, inactiveOf, isReading, knownOf, unknownOf } from './alerts.ts'
import type { AlertLoggerOptions } from '../../../src/rules/notify/logger.ts'

async function linesOf(
  count: number,
  options: (write: (line: string) => void) => AlertLoggerOptions,
  complete = true,
) {
  const lines: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const { open, append } = alertLog()
  const log = await open()
  const job = notifyLogger(
    log,
    options((line) => {
      lines.push(line)
      if (lines.length === count) resolve()
    }),
  )
  onTestFinished(() => job.stop())
  await isReading(log, 'alert-log')
  const given = {
    alert: 'Burst',
    labels: { monitor: 'mon_1' },
    value: 3,
    complete,
    since: '2026-01-02T03:04:05.000Z',
  }
  const { firing, resolved } = episodeOf({ ...given, annotations: { summary: 'three\u001B[31m\nerrors' } })
  await append(...inactiveOf(given), firing, unknownOf(given), knownOf(given), resolved)
  await promise
  return lines
}

describe('notifyLogger', () => {
  it('writes a line to a logger for each event', async () => {
    const lines = await linesOf(4, (write) => ({ logger: pino({ base: null, timestamp: false }, { write }) }))

    const [firing, unknown, known, resolved] = lines.map((line): unknown => JSON.parse(line))
    expect(firing).toMatchObject({
      level: 40,
      type: 'alert.firing',
      alert: 'Burst',
      labels: { alertname: 'Burst', monitor: 'mon_1' },
      value: 3,
      msg: 'firing Burst{monitor="mon_1"} value 3: three [31m errors',
    })
    expect(unknown).toMatchObject({ level: 40, reason: 'gap', msg: 'unknown Burst{monitor="mon_1"} (gap)' })
    expect(known).toMatchObject({ level: 30, msg: 'known Burst{monitor="mon_1"}' })
    expect(resolved).toMatchObject({ level: 30, reason: 'condition' })
  })

  it('says that the rule of an alert did not have all events', async () => {
    const lines = await linesOf(1, (write) => ({ logger: pino({}, { write }) }), false)

    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      annotations: { incomplete: 'The rule did not have all events when this alert began.' },
      msg: 'firing Burst{monitor="mon_1"} value 3 (incomplete): three [31m errors',
    })
  })

  it('writes a line to stderr for each event, without control characters', async () => {
    const spy = vi.spyOn(process.stderr, 'write')
    onTestFinished(() => spy.mockRestore())

    const lines = await linesOf(3, (write) => {
      spy.mockImplementation((text) => {
        write(String(text))
        return true
      })
      return {}
    })

    expect(lines[0]).toMatch(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z firing Burst\{monitor="mon_1"\} value 3: three \[31m errors\n$/,
    )
  })

  it('refuses a logger that it cannot use', async () => {
    const { open } = alertLog()
    const log = await open()
    const options: AlertLoggerOptions = JSON.parse('{"logger":{"info":1}}')
    expect(() => notifyLogger(log, options)).toThrow(
      /^logger must be a logger with info and warn, got an object$/,
    )
  })
})
