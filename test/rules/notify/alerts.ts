import { setImmediate } from 'node:timers/promises'
import { createHash } from 'node:crypto'
import { memoryStore, openLog } from 'rivulet/log'
import type { EventOf, ResearchEvent } from 'rivulet'
import type { EventLog, MemoryStoreOptions } from 'rivulet/log'
import type { AlertEvent } from 'rivulet/rules'
import { onTestFinished } from 'vitest'
import { append } from '../../log/append.ts'

type Alert = EventOf<'alert.firing'>['data']

/** What a test says of an alert. */
export interface Given extends Partial<Omit<Alert, 'episode'>> {
  readonly alert: string
}

function dataOf({ alert, labels = {}, since = new Date().toISOString(), ...rest }: Given): Alert {
  const all = { alertname: alert, ...labels }
  const episode = createHash('sha256')
    .update(JSON.stringify([alert, all, since]))
    .digest('hex')
  return {
    group: null,
    key: {},
    annotations: { summary: `${alert} happens` },
    value: null,
    complete: true,
    events: [],
    ...rest,
    alert,
    labels: all,
    since,
    episode,
  }
}

function eventOf<Type extends AlertEvent['type']>(
  type: Type,
  data: EventOf<Type>['data'],
  key: string,
): ResearchEvent {
  const at = new Date().toISOString()
  const event = {
    id: `${type}:${key}`,
    source: `/rules/${data.alert}`,
    type,
    time: at,
    data,
    received: at,
    via: 'process',
  }
  return event as ResearchEvent
}

/** The events of an episode. */
export function episodeOf(given: Given): {
  readonly pending: ResearchEvent
  readonly firing: ResearchEvent
  readonly resolved: ResearchEvent
} {
  const data = dataOf(given)
  return {
    pending: eventOf('alert.pending', data, data.episode),
    firing: eventOf('alert.firing', data, data.episode),
    resolved: eventOf('alert.resolved', { ...data, reason: 'condition' }, data.episode),
  }
}

/** An event that says that nothing is known of an alert. */
export function unknownOf(given: Given): ResearchEvent {
  const { alert, group, key, labels, since, episode } = dataOf(given)
  return eventOf('alert.unknown', { alert, group, key, labels, reason: 'gap', since }, episode)
}

/** An event that says that it is known again what becomes of an alert. */
export function knownOf(given: Given): ResearchEvent {
  const { alert, group, key, labels, episode } = dataOf(given)
  return eventOf('alert.known', { alert, group, key, labels }, episode)
}

/** A pending alert that does not fire. */
export function inactiveOf(given: Given): readonly ResearchEvent[] {
  const data = dataOf(given)
  return [episodeOf(data).pending, eventOf('alert.inactive', data, data.episode)]
}

/** A log that can be opened several times, one after the other, and what appends to it. */
export function alertLog(options: MemoryStoreOptions = {}) {
  const store = memoryStore(options)
  return {
    async open(): Promise<EventLog> {
      const log = await openLog(store.connect())
      onTestFinished(() => log.close())
      return log
    },
    append: (...events: readonly ResearchEvent[]) => append(store, events, 'rules'),
  }
}

/** Resolves once a consumer has its place in the log, so that it reads what is appended from now on. */
export async function isReading(log: EventLog, consumer: string): Promise<void> {
  for (;;) {
    const { readers } = await log.stats()
    if (readers.some(({ kind, name, owner }) => kind === 'consumer' && name === consumer && owner !== null))
      return
    await setImmediate()
  }
}
