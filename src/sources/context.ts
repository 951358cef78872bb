import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import type { Backoff } from '../protocol/backoff.ts'
import type { LogClock, ResearchEvent } from '../protocol/event.ts'
import type { Quota } from '../protocol/quotas.ts'
import type { Warning } from '../protocol/problem.ts'
import type { Transport } from '../transport/transport.ts'

/** An event inside the library, for logs and metrics. No reaction is needed. */
export type Diagnostic =
  /** A single request failed and is retried after `delay` ms. */
  | {
      readonly kind: 'retry'
      readonly method: string
      readonly path: string
      readonly attempt: number
      readonly delay: number
      readonly error: unknown
    }
  /**
   * Requests of this quota have begun to wait, since more of them would be refused. The first one waits `delay` ms. Emitted
   * once until none waits.
   */
  | { readonly kind: 'quota'; readonly quota: Quota; readonly delay: number }
  /** A stream or a poll reconnects after `delay` ms. `cause` is the error, or undefined after a clean close. */
  | {
      readonly kind: 'reconnect'
      readonly source: string
      readonly attempt: number
      readonly delay: number
      readonly cause: unknown
    }
  /** A duplicate of an emitted event was dropped. */
  | { readonly kind: 'duplicate'; readonly event: ResearchEvent }
  /**
   * A list has sent this many pages in a row that are empty or repeat the page before. Further ones are requested more slowly, and the
   * list errors with a ProtocolError after 1,000. Emitted once until a page has something new.
   */
  | { readonly kind: 'barren_pages'; readonly path: string; readonly pages: number }
  /** A response had warnings (§2.4). */
  | { readonly kind: 'warnings'; readonly source: string; readonly warnings: readonly Warning[] }
  /**
   * Recording is paused, since the log has its maximum size and the reader `pausedBy` needs the oldest entry: see that it
   * runs, or remove it. null: recording continues.
   */
  | { readonly kind: 'retention'; readonly pausedBy: string | null }
  /** The wall clock has jumped, or is right again: see the event `log.clock`. */
  | ({ readonly kind: 'clock' } & LogClock)
  /** The events of a webhook could not be fetched. `event` is the webhook's own event, which is emitted instead. */
  | { readonly kind: 'expansion'; readonly error: unknown; readonly event: ResearchEvent }
  /**
   * The events of a webhook could not be fetched for now, and are requested again after `delay` ms. Until then the webhook is pending, and the
   * event time of a log that records it waits.
   */
  | {
      readonly kind: 'expansion_retry'
      readonly source: string
      readonly attempt: number
      readonly delay: number
      readonly cause: unknown
    }
  /** A run that was unsubscribed from could not be cancelled. It continues at the service. */
  | { readonly kind: 'cancellation'; readonly source: string; readonly error: unknown }

/** The dependencies of every source: the transport, time, randomness and diagnostics. */
export interface Context {
  readonly transport: Transport
  readonly backoff: Required<Backoff>
  readonly scheduler: SchedulerLike
  readonly random: () => number
  /** How long an incomplete stream is resumed without a new event, in ms. */
  readonly patience: number
  readonly report: (diagnostic: Diagnostic) => void
  /** The path of the streams of a group's runs at the service. */
  readonly groupRuns: GroupRunsPath
}

/** The prefix of the path of a group's runs stream: the prefix of the interface document (§4.5), or the only one that newer services have. */
export interface GroupRunsPath {
  /** The prefix that was found last. */
  prefix: '/v1beta' | '/v1'
}

/** The dependencies of each client, for what is built on a client elsewhere, such as the recording of a log. */
const contexts = new WeakMap<object, Context>()

/** Returns the client, whose context {@link contextOf} finds. */
export function withContext<C extends object>(client: C, context: Context): C {
  contexts.set(client, context)
  return client
}

/** @throws ArgumentError for anything but a client of `createClient`. */
export function contextOf(client: unknown): Context {
  const context = contexts.get(Object(client))
  if (context === undefined) throw new ArgumentError('client', 'a client of createClient', client)
  return context
}
