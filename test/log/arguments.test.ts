import { DatabaseSync } from 'node:sqlite'
import { ArgumentError, createClient } from 'rivulet'
import { exactlyOnceIn, memoryStore, openLog } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { exactlyOnce, rewindEffects, sqliteEffects, sqliteStore } from 'rivulet/log/sqlite'
import { inboxLimits, migrateLog, storeConformance } from 'rivulet/log/store'
import { describe, expect, it } from 'vitest'
import { named, refusalOf } from '../support/refusal.ts'
import type { UncheckedCall } from '../support/refusal.ts'

const client = createClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'key' })
const log = await openLog(memoryStore())
const deadLetters = log.deadLetters('consumer')
const state = log.state('process')
const store = memoryStore()
// The file is opened by the first call.
const file = sqliteStore('/nowhere/log.db')
const database = new DatabaseSync(':memory:')
const handle = () => {}
const runner = { describe: () => {}, it: () => {} }
const server = { servers: 'nats://127.0.0.1:9', name: 'log' }
const process = { version: 1, key: () => 'key', init: () => null, event: () => {} }
const monitors = ['monitor_1']
const start = await log.positionAt('start')

const CALLS: readonly UncheckedCall[] = [
  ['openLog', openLog, []],
  ['openLog', openLog, [{}]],
  ['openLog', openLog, ['log.db']],
  ['openLog', openLog, [store, { retentoin: {} }]],
  ['openLog', openLog, [store, 5]],
  ['openLog', openLog, [store, { retention: 5 }]],
  ['openLog', openLog, [store, { retention: { maxage: 1 } }]],
  ['openLog', openLog, [store, { retention: { maxBytes: '1' } }]],
  ['memoryStore', memoryStore, [{ partition: 3 }]],
  ['memoryStore', memoryStore, [5]],
  ['memoryStore', memoryStore, [{ clock: 5 }]],
  ['memoryStore', memoryStore, [{ inbox: { maxDelivery: 1 } }]],
  ['memoryStore', memoryStore, [{ inbox: { maxBytes: '1' } }]],
  ['connect', store.connect, [{ owners: 'me' }], store],
  ['connect', store.connect, [{ owner: 5 }], store],
  ['exactlyOnceIn', exactlyOnceIn, []],
  ['exactlyOnceIn', exactlyOnceIn, [{}, undefined]],
  ['exactlyOnceIn', exactlyOnceIn, [{}, {}]],
  ['exactlyOnceIn', exactlyOnceIn, [{}, { effect: handle, prepar: handle }]],
  ['record', log.record, [], log],
  ['record', log.record, [{}], log],
  ['record', log.record, [{ client }], log],
  ['record', log.record, [{ client: {}, monitors }], log],
  ['record', log.record, [{ client, monitor: monitors }], log],
  ['record', log.record, [{ client, monitors: 5 }], log],
  ['record', log.record, [{ client, monitors: [{ id: 'monitor_1', pollinterval: 5 }] }], log],
  ['record', log.record, [{ client, monitors, wait: 5 }], log],
  ['record', log.record, [{ client, monitors, share: 5 }], log],
  ['record', log.record, [{ client, monitors, tick: '1' }], log],
  ['record', log.record, [{ client, webhooks: 5 }], log],
  ['consume', log.consume, [], log],
  ['consume', log.consume, [{}], log],
  ['consume', log.consume, ['name', 5], log],
  ['consume', log.consume, ['name', { type: ['log.tick'] }], log],
  ['consume', log.consume, ['name', { types: 'log.tick' }], log],
  ['consume', log.consume, ['name', { where: 5 }], log],
  ['consume', log.consume, ['name', { wait: 5 }], log],
  ['consume', log.consume, ['name', { scheduler: 5 }], log],
  ['consume', log.consume, ['name', {}, undefined], log],
  ['consume', log.consume, ['name', {}, {}], log],
  ['consume', log.consume, ['name', { concurency: 5 }, handle], log],
  ['consume', log.consume, ['name', { concurrency: '5' }, handle], log],
  ['consume', log.consume, ['name', { signal: 5 }, handle], log],
  ['consume', log.consume, ['name', handle, handle], log],
  ['deadLetters', log.deadLetters, [], log],
  ['deadLetters', log.deadLetters, [{}], log],
  ['deadLetters', log.deadLetters, [{ consumers: 'name' }], log],
  ['deadLetters', log.deadLetters, [5], log],
  ['redeliver', deadLetters.redeliver, []],
  ['redeliver', deadLetters.redeliver, [5]],
  ['remove of dead letters', deadLetters.remove, []],
  ['process', log.process, [], log],
  ['process', log.process, ['name'], log],
  ['process', log.process, ['name', {}], log],
  ['process', log.process, ['name', { ...process, rebuilt: true }], log],
  ['process', log.process, ['name', { ...process, version: '1' }], log],
  ['process', log.process, ['name', { ...process, event: 5 }], log],
  ['state', log.state, [], log],
  ['state', log.state, [{}], log],
  ['get', state.get, [], state],
  ['get', state.get, [5], state],
  ['snapshot', state.snapshot, [{ limits: 1 }], state],
  ['snapshot', state.snapshot, [5], state],
  ['page', state.page, [{ prefx: 'a' }], state],
  ['page', state.page, [{ prefix: 5 }], state],
  ['changes', state.changes, [5], state],
  ['changes', state.changes, [undefined, { life: true }], state],
  ['read', log.read, [], log],
  ['read', log.read, [{}], log],
  ['read', log.read, [start, 5], log],
  ['read', log.read, [start, null], log],
  ['read', log.read, [start, { limits: 1 }], log],
  // Other options of a store's `read`.
  ['read', log.read, [start, { until: start }], log],
  ['read', log.read, [start, { partition: 0 }], log],
  ['read', log.read, [start, { limit: '1' }], log],
  ['read', log.read, [start, { types: 'log.tick' }], log],
  ['positionAt', log.positionAt, [], log],
  ['positionAt', log.positionAt, [{}], log],
  ['positionAt', log.positionAt, ['begin'], log],
  ['remove', log.remove, [], log],
  ['remove', log.remove, [{}], log],
  ['remove', log.remove, ['name'], log],
  ['forget', log.forget, [], log],
  ['forget', log.forget, [{}], log],
  ['forget', log.forget, [{ sources: 'a' }], log],
  ['export', log.export, [5], log],
  ['export', log.export, [{ untill: start }], log],
  ['export', log.export, [{ until: 5 }], log],
  ['export', log.export, [{ types: 'log.tick' }], log],
  ['observe', log.observe, [], log],
  ['observe', log.observe, [5], log],
  ['observe', log.observe, [{ append: 5 }], log],
  ['observe', log.observe, [handle], log],
  ['sqliteStore', sqliteStore, []],
  ['sqliteStore', sqliteStore, [{}]],
  ['sqliteStore', sqliteStore, ['log.db', 5]],
  ['sqliteStore', sqliteStore, ['log.db', { creat: false }]],
  ['sqliteStore', sqliteStore, ['log.db', { create: 'no' }]],
  ['backup', file.backup, [], file],
  ['backup', file.backup, [{}], file],
  ['exactlyOnce', exactlyOnce, []],
  ['exactlyOnce', exactlyOnce, [{}, { effect: handle }]],
  ['exactlyOnce', exactlyOnce, [database]],
  ['exactlyOnce', exactlyOnce, [database, {}]],
  ['exactlyOnce', exactlyOnce, [database, { effects: handle }]],
  ['migrateLog', migrateLog, []],
  ['migrateLog', migrateLog, [{}, {}]],
  ['migrateLog', migrateLog, [file]],
  ['migrateLog', migrateLog, [file, store]],
  ['migrateLog', migrateLog, [file, file, 5]],
  ['migrateLog', migrateLog, [file, file, { effect: [] }]],
  ['migrateLog', migrateLog, [file, file, { effects: [5] }]],
  ['migrateLog', migrateLog, [file, file, { signal: 5 }]],
  ['sqliteEffects', sqliteEffects, []],
  ['sqliteEffects', sqliteEffects, [{}]],
  ['rewindEffects', rewindEffects, []],
  ['rewindEffects', rewindEffects, [{}, file, 'name']],
  ['rewindEffects', rewindEffects, [database, undefined, 'name']],
  ['rewindEffects', rewindEffects, [database, {}, 'name']],
  ['rewindEffects', rewindEffects, [database, file]],
  ['natsStore', natsStore, []],
  ['natsStore', natsStore, [{}]],
  ['natsStore', natsStore, [{ servers: server.servers }]],
  ['natsStore', natsStore, [{ ...server, server: 'nats://127.0.0.1:9' }]],
  ['natsStore', natsStore, [{ ...server, servers: 5 }]],
  ['natsStore', natsStore, [{ ...server, credentials: null }]],
  ['natsStore', natsStore, [{ ...server, credentials: { user: 'me' } }]],
  ['natsStore', natsStore, [{ ...server, tls: { ca: 5 } }]],
  ['natsStore', natsStore, [{ ...server, tls: { caPath: 'ca.pem' } }]],
  ['natsStore', natsStore, [{ ...server, lease: '5' }]],
  ['storeConformance', storeConformance, []],
  ['storeConformance', storeConformance, [{}]],
  ['storeConformance', storeConformance, [runner]],
  ['storeConformance', storeConformance, [runner, {}]],
  ['storeConformance', storeConformance, [runner, { name: 'a store', open: 5 }]],
  ['storeConformance', storeConformance, [runner, { name: 'a store', open: handle, area: ['claims'] }]],
  ['storeConformance', storeConformance, [runner, { name: 'a store', open: handle, areas: ['claim'] }]],
  ['inboxLimits', inboxLimits, [5]],
  ['inboxLimits', inboxLimits, [{ maxDelivery: 1 }]],
  ['inboxLimits', inboxLimits, [{ maxBytes: '1' }]],
]

describe('the functions of a log', () => {
  it.each(named(CALLS))('refuse at the call: $name of $args', async ({ call }) => {
    expect(await refusalOf(call)).toBeInstanceOf(ArgumentError)
  })
})
