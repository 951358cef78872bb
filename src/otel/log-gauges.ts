import type { Attributes, BatchObservableResult, Meter } from '@opentelemetry/api'
import type { EventLog } from '../log/event-log/event-log.ts'
import { limitedRead } from '../protocol/limited-read.ts'
import { ignoringErrors } from '../protocol/observers.ts'

/** How long to wait for the log, in ms. After that, a collection goes without its numbers. */
const LIMIT = 5_000

/** Reports the numbers of a log whenever metrics are collected. Returns a function that ends this. */
export function gaugeLog(meter: Meter, log: Pick<EventLog, 'stats'>): () => void {
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(`rivulet.log.${name}`, { description, unit })
  const entries = gauge('entries', '{entry}', 'Entries of the log')
  const size = gauge('size', 'By', 'Used size of the log')
  const walSize = gauge('wal.size', 'By', 'Size of the write-ahead log')
  const pending = gauge('inbox.pending', '{webhook}', 'Webhooks that are stored and not recorded yet')
  const paused = gauge('paused', '1', '1 while a reader that is behind keeps the log from recording')
  const lag = gauge('reader.lag', '{entry}', 'Entries that a reader has not acknowledged')
  const lagTime = gauge('reader.lag.time', 's', 'Time since the oldest of these was recorded')
  const deadLetters = gauge('reader.dead_letters', '{entry}', 'Entries that a reader could not handle')
  const eventTimeLag = gauge('event_time.lag', 's', 'By how much event time is behind')
  const isComplete = gauge('event_time.complete', '1', '0 while event time goes on without a recording')
  const watermarkLag = gauge('reader.watermark.lag', 's', 'By how much the watermark of a process is behind')
  const ofTime = [eventTimeLag, isComplete, watermarkLag]
  const gauges = [entries, size, walSize, pending, paused, lag, lagTime, deadLetters, ...ofTime]

  const read = limitedRead(() => log.stats(), LIMIT)

  async function observe(result: BatchObservableResult): Promise<void> {
    const stats = await read()
    if (stats === undefined) return
    result.observe(entries, stats.entries)
    result.observe(size, stats.bytes)
    result.observe(walSize, stats.walBytes)
    result.observe(pending, stats.inbox.pending)
    result.observe(paused, stats.pausedBy === null ? 0 : 1)
    const { now, through, complete } = stats.time
    const behind = (time: number) => Math.max(0, now - time) / 1_000
    if (through !== null) result.observe(eventTimeLag, behind(through))
    result.observe(isComplete, complete ? 1 : 0)
    for (const reader of stats.readers) {
      const attributes: Attributes = {
        'messaging.consumer.group.name': reader.name,
        'rivulet.reader.kind': reader.kind,
      }
      result.observe(lag, reader.lag.entries, attributes)
      result.observe(lagTime, reader.lag.seconds, attributes)
      result.observe(deadLetters, reader.deadLetters, attributes)
      if (reader.watermark !== null) result.observe(watermarkLag, behind(reader.watermark), attributes)
    }
  }

  // A log that is closed has no numbers, which is no failure of the collection.
  const callback = (result: BatchObservableResult) => observe(result).catch(() => {})
  meter.addBatchObservableCallback(callback, gauges)
  return () => ignoringErrors(() => meter.removeBatchObservableCallback(callback, gauges))
}
