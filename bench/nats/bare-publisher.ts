import { createHash } from 'node:crypto'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import type { ResearchEvent } from 'rivulet'

/** What follows one that is not acknowledged yet. */
export type Expectation =
  /** Nothing does: the number of the one before of its source is expected. */
  | 'sequence'
  /** Up to so many messages, each of which expects the one before, as a recorder's append has. */
  | 'previous'
  /** Anything may: nothing is expected. */
  | 'none'

const BATCH = 256

/** A publisher of messages as a log has them, and nothing else. */
export async function barePublisher(servers: string, name: string) {
  const nats = await connect({ servers, noAsyncTraces: true })
  const js = jetstream(nats)
  const jsm = await jetstreamManager(nats)
  const stream = `bare_${name}`
  await jsm.streams.add({ name: stream, subjects: [`bare.${name}.>`] })
  const subjects = new Map<string, string>()
  const subjectOf = (source: string) => {
    let subject = subjects.get(source)
    if (subject === undefined) {
      const hash = createHash('sha256').update(source).digest('base64url').slice(0, 22)
      subjects.set(source, (subject = `bare.${name}.ev.1.${hash}`))
    }
    return subject
  }
  const publish = (event: ResearchEvent, expect: object) => {
    const fields = headers()
    fields.set('Rv-Entry', `${event.id.padStart(22, '-').slice(-22)} 1 7 ${Date.now()} 12345 ${event.type}`)
    fields.set('Rv-Type', event.type)
    fields.set('Rv-Source', event.source)
    const payload = JSON.stringify(event)
    return js.publish(subjectOf(event.source), payload, { headers: fields, msgID: msgId(event), expect })
  }
  const batches = async (
    events: readonly ResearchEvent[],
    send: (batch: ResearchEvent[]) => Promise<unknown>,
  ) => {
    for (let at = 0; at < events.length; at += BATCH) await send(events.slice(at, at + BATCH))
  }
  return {
    async publish(events: readonly ResearchEvent[], expectation: Expectation): Promise<void> {
      const bySource = [...Map.groupBy(events, ({ source }) => source).values()]
      if (expectation === 'none') {
        await batches(events, (batch) => Promise.all(batch.map((event) => publish(event, {}))))
      } else if (expectation === 'sequence') {
        await Promise.all(
          bySource.map(async (of) => {
            let last = 0
            for (const event of of) last = (await publish(event, { lastSubjectSequence: last })).seq
          }),
        )
      } else {
        const last = new Map<string, number>()
        await batches(events, async (batch) => {
          const runs = [...Map.groupBy(batch, ({ source }) => source)]
          await Promise.all(
            runs.map(async ([source, run]) => {
              const acks = await Promise.all(
                run.map((event, at) => {
                  const before = run[at - 1]
                  return publish(
                    event,
                    before === undefined
                      ? { lastSubjectSequence: last.get(source) ?? 0 }
                      : { lastMsgID: msgId(before) },
                  )
                }),
              )
              last.set(source, acks.at(-1)?.seq ?? 0)
            }),
          )
        })
      }
    },
    /** Number of messages of the stream, which is deleted then. */
    async remove(): Promise<number> {
      const { state } = await jsm.streams.info(stream)
      await jsm.streams.delete(stream)
      await nats.close()
      return state.messages
    },
  }
}

/** Of the length of the log's. */
function msgId({ id }: ResearchEvent): string {
  return id.padStart(45, '-')
}
