import { ArgumentError } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import {
  alerts,
  backtest,
  defineRules,
  explainRule,
  loadRules,
  notifyAlertmanager,
  notifyLogger,
  notifySlack,
  notifyWebhook,
  parseRules,
  placedText,
  placeHistory,
  ruleStatus,
  runRules,
  testRules,
  timelineHtml,
} from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { named, refusalOf } from '../support/refusal.ts'
import type { UncheckedCall } from '../support/refusal.ts'

const log = await openLog(memoryStore())
const rules = defineRules([{ alert: 'Failed', on: ['monitor.error'] }])
const url = 'https://alerts.example'
const event = { source: '/v1/monitors/m', id: 'e', type: 'monitor.error' }

const CALLS: readonly UncheckedCall[] = [
  ['alerts', alerts, []],
  ['alerts', alerts, [{}]],
  ['alerts', alerts, [rules, 5]],
  ['alerts', alerts, [rules, null]],
  ['alerts', alerts, [rules, { maxKey: 5 }]],
  ['alerts', alerts, [rules, { maxKeys: '5' }]],
  ['alerts', alerts, [rules, { scheduler: 5 }]],
  ['backtest', backtest, []],
  ['backtest', backtest, [{}, []]],
  ['backtest', backtest, [rules]],
  ['backtest', backtest, [rules, {}]],
  ['backtest', backtest, [rules, 'events.ndjson']],
  ['backtest', backtest, [rules, [], { untill: 1 }]],
  ['backtest', backtest, [rules, [], { until: '2026' }]],
  ['backtest', backtest, [rules, [], { onAlert: 5 }]],
  ['explainRule', explainRule, []],
  ['explainRule', explainRule, [{}, 'Failed', event]],
  ['explainRule', explainRule, [rules, 'Fails', event]],
  ['explainRule', explainRule, [rules, 'Failed']],
  ['explainRule', explainRule, [rules, 'Failed', {}]],
  ['explainRule', explainRule, [rules, 'Failed', { ...event, type: 5 }]],
  ['loadRules', loadRules, []],
  ['loadRules', loadRules, [{}]],
  ['loadRules', loadRules, [[]]],
  ['loadRules', loadRules, [[5]]],
  ['notifyAlertmanager', notifyAlertmanager, []],
  ['notifyAlertmanager', notifyAlertmanager, [log]],
  ['notifyAlertmanager', notifyAlertmanager, [{}, { urls: url }]],
  ['notifyAlertmanager', notifyAlertmanager, [log, { url }]],
  ['notifyAlertmanager', notifyAlertmanager, [log, { urls: 5 }]],
  ['notifyLogger', notifyLogger, []],
  ['notifyLogger', notifyLogger, [{}]],
  ['notifyLogger', notifyLogger, [log, { log: console }]],
  ['notifyLogger', notifyLogger, [log, { logger: {} }]],
  ['notifySlack', notifySlack, []],
  ['notifySlack', notifySlack, [log]],
  ['notifySlack', notifySlack, [{}, { url }]],
  ['notifySlack', notifySlack, [log, { url, links: url }]],
  ['notifySlack', notifySlack, [log, { url: 5 }]],
  ['notifyWebhook', notifyWebhook, []],
  ['notifyWebhook', notifyWebhook, [log]],
  ['notifyWebhook', notifyWebhook, [{}, { url }]],
  ['notifyWebhook', notifyWebhook, [log, { url, secret: 'secret' }]],
  ['notifyWebhook', notifyWebhook, [log, { url: 5 }]],
  ['parseRules', parseRules, []],
  ['parseRules', parseRules, [{}]],
  ['parseRules', parseRules, ['version: 1', 5]],
  ['parseRules', parseRules, ['version: 1', { path: 'rules.yaml' }]],
  ['placedText', placedText, []],
  ['placedText', placedText, [{}]],
  ['placedText', placedText, [{ time: 1, completion: 1, date: 1, unplaced: '1' }]],
  ['placeHistory', placeHistory, []],
  ['placeHistory', placeHistory, [{}]],
  ['placeHistory', placeHistory, [[5]]],
  ['placeHistory', placeHistory, [[], { frequence: '1h' }]],
  ['placeHistory', placeHistory, [[], { now: '2026' }]],
  ['ruleStatus', ruleStatus, []],
  ['ruleStatus', ruleStatus, [{}]],
  ['ruleStatus', ruleStatus, [log, { names: 'rules' }]],
  ['ruleStatus', ruleStatus, [log, { limit: '5' }]],
  ['runRules', runRules, []],
  ['runRules', runRules, [{}, rules]],
  ['runRules', runRules, [log]],
  ['runRules', runRules, [log, 'rules.yaml']],
  ['runRules', runRules, [log, rules, { start: 'end' }]],
  ['runRules', runRules, [log, rules, { name: 5 }]],
  ['runRules', runRules, [log, rules, { after: 'copies' }]],
  ['runRules', runRules, [log, rules, { after: ['rules'] }]],
  ['testRules', testRules, []],
  ['testRules', testRules, [{}]],
  ['testRules', testRules, [[]]],
  ['timelineHtml', timelineHtml, []],
  ['timelineHtml', timelineHtml, [{}]],
  ['timelineHtml', timelineHtml, [{ rules: [], episodes: [] }, { titel: 'Backtest' }]],
]

describe('the functions of rules', () => {
  it.each(named(CALLS))('refuse at the call: $name of $args', async ({ call }) => {
    expect(await refusalOf(call)).toBeInstanceOf(ArgumentError)
  })

  it.each([[undefined], [{}], [5], [[{ alert: 'Failed', onn: [] }]]])(
    'say with a RuleError what is wrong with the rules %j',
    async (...args) => {
      expect(await refusalOf(['defineRules', defineRules, args])).toMatchObject({ name: 'RuleError' })
    },
  )
})
