import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ArgumentError } from 'rivulet'
import { createDashboard } from 'rivulet/dashboard'
import { createGateway } from 'rivulet/gateway'
import { memoryStore, openLog } from 'rivulet/log'
import { migrateLog } from 'rivulet/log/store'
import { instrument } from 'rivulet/otel'
import {
  notifyAlertmanager,
  notifyLogger,
  notifySlack,
  notifyWebhook,
  ruleStatus,
  runRules,
} from 'rivulet/rules'
import { createResearchService } from 'rivulet/service'
import { httpSink } from 'rivulet/webhooks'

// What a user without a type checker could write.
// oxlint-disable-next-line typescript/no-explicit-any
type Untyped = any

const SECRET = 'hunter2'
/** A URL with a password, or options with secrets, in the place of another argument. */
const url: Untyped = `nats://user:${SECRET}@host`
const options: Untyped = { url, secrets: [SECRET], auth: { bearer: SECRET } }
const log: Untyped = await openLog(memoryStore())

const calls: readonly (readonly [string, (given: Untyped) => unknown])[] = [
  ['the log of notifySlack', (given) => notifySlack(given, options)],
  ['the log of notifyWebhook', (given) => notifyWebhook(given, options)],
  ['the log of notifyAlertmanager', (given) => notifyAlertmanager(given, options)],
  ['the log of notifyLogger', (given) => notifyLogger(given, options)],
  ['the log of runRules', (given) => runRules(given, options)],
  ['the rules of runRules', (given) => runRules(log, given)],
  ['the log of ruleStatus', (given) => ruleStatus(given)],
  ['the options of httpSink', (given) => httpSink({ ...given, url: SECRET })],
  ['the url of httpSink', (given) => httpSink({ url: given })],
  ['the auth of httpSink', (given) => httpSink({ url: 'https://x.example', auth: given })],
  ['the headers of httpSink', (given) => httpSink({ url: 'https://x.example', headers: given })],
  [
    'the secrets of httpSink',
    (given) => httpSink({ url: 'https://x.example', secrets: [given, {}] as Untyped }),
  ],
  ['the event of httpSink', (given) => httpSink({ url: 'https://x.example' })(given)],
  ['the log of createGateway', (given) => createGateway({ log: given, views: {}, tokens: options })],
  ['the log of createDashboard', (given) => createDashboard({ log: given })],
  ['the log of instrument', (given) => instrument({ log: given })],
  ['the store of openLog', (given) => openLog(given)],
  ['the old log of migrateLog', (given) => migrateLog(given, memoryStore())],
  ['the effects of migrateLog', (given) => migrateLog(log, log, { effects: given })],
  ['an entry of the effects of migrateLog', (given) => migrateLog(log, log, { effects: [given] })],
  ['the processor of a service', (given) => createResearchService({ docs: '.', processor: given })],
  ['the clock of a service', (given) => createResearchService({ docs: '.', clock: given })],
]

describe('the error about a wrong argument', () => {
  describe.each(calls)('that is %s', (_, call) => {
    it.each([
      ['a URL with a password', url],
      ['options with secrets', options],
    ])('has nothing of %s', async (_kind, given: unknown) => {
      // Some calls throw, and some reject.
      const calling = async () => await call(given)
      const error: unknown = await calling().catch((thrown: unknown) => thrown)

      expect(error).toBeInstanceOf(ArgumentError)
      expect(inspect(error, { depth: Infinity })).not.toContain(SECRET)
    })
  })
})
