import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkSignal, checkText } from '../../protocol/check.ts'
import { groupSource, monitorSource, runSource } from '../../protocol/event.ts'
import { findAllSource } from '../../protocol/find-all-event.ts'
import { subscribeUnderGate } from '../../protocol/gate.ts'
import type { WebhookInbox } from '../../protocol/webhook.ts'
import { contextOf } from '../../sources/context.ts'
import type { Context, Diagnostic } from '../../sources/context.ts'
import { StreamPositionError } from '../../sources/shapes/stream-item.ts'
import { areEmpty, watchedStreams } from '../../sources/watched-streams.ts'
import type {
  Watched,
  WatchedFindAll,
  WatchedGroup,
  WatchedMonitor,
  WatchedRun,
  WatchedStreams,
} from '../../sources/watched-streams.ts'
import { FencedError, LogError } from '../errors.ts'
import { Job } from '../event-log/job.ts'
import type { LogJob } from '../event-log/job.ts'
import { UNDIVIDED } from '../store/sharing-store.ts'
import type { Partitions, SharingStore } from '../store/sharing-store.ts'
import { Pauses } from './pauses.ts'
import { checkTick, Clock, MAX_HOLD } from './clock.ts'
import { ProgressRegistry } from './progress-registry.ts'
import { RecordingParts } from './recording-parts.ts'
import { RecordedList } from './recorded-list.ts'
import type { Recorder, RecorderReports } from './recorder.ts'
import { Upstream } from './upstream.ts'
import { WebhookDrain } from './webhook-drain.ts'
import { workShare } from './work-share.ts'

/** A receiver of webhooks whose inbox belongs to a log. */
interface RecordedWebhooks {
  readonly inbox: WebhookInbox | undefined
}

/** Options of `log.record`. `client` is required, and at least one of `monitors`, `taskGroups`, `runs`, `findAlls` and `webhooks`. */
export interface RecordOptions {
  /** The client that reads the streams, of `createClient`. */
  readonly client: { readonly diagnostics: Observable<Diagnostic> }
  /**
   * Monitors: ids, or `{ id, after, pollInterval, limit, include_completions }`. `pollInterval` is in ms, default 60,000. Each list is an array,
   * or an Observable of arrays. Default: none.
   *
   * The options are those of `monitors.follow`. Executions without news are recorded too, as `monitor.completion`. With `include_completions:
   * false` they are not listed (§4.1), and only those that webhooks bring are recorded.
   */
  readonly monitors?: Watched<WatchedMonitor>
  /**
   * Task groups: ids, or `{ id, include_input, include_output, until }`. Default: none.
   *
   * The options are those of `taskGroups.runs`. Runs come with their output unless `include_output` is false, and until the group is done unless
   * `until` is `closed`.
   */
  readonly taskGroups?: Watched<WatchedGroup>
  /**
   * Ids of single runs. Default: none.
   *
   * A run that has ended is not requested again by a later recording.
   */
  readonly runs?: Watched<WatchedRun>
  /**
   * FindAll runs: ids, or `{ id, until }`. Default: none.
   *
   * A run that has ended is not requested again by a later recording, unless its `until` is `closed`.
   */
  readonly findAlls?: Watched<WatchedFindAll>
  /**
   * Records webhooks: the receiver with `log.inbox`, or `true` if it runs in another process. Default: none are recorded.
   *
   * The recording then runs until it is stopped. One recording of a log does this at a time; the next one waits until it ends.
   */
  readonly webhooks?: RecordedWebhooks | true
  /**
   * Waits for sources that another recording holds, until this signal is aborted. Default: such a source is a `LogInUseError`.
   *
   * Without effect with {@link share}, which always waits.
   */
  readonly wait?: AbortSignal
  /**
   * A name: divides the sources with all recordings of this name, in any number of processes. Default: this recording has all of its sources.
   *
   * The recordings have the same lists, and each source is recorded by one of them. A process that joins takes over its share; if a process
   * stops, or dies and its lease runs out, the others take over its share. The recording runs until it is stopped, waits for a source that
   * another recording has, and continues with its share after it was suspended for longer than its lease.
   *
   * ```ts
   * import { createClient } from 'rivulet'
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
   * const client = createClient()
   * const recording = log.record({ client, monitors: ['monitor_1', 'monitor_2'], share: 'monitors' })
   * ```
   */
  readonly share?: string
  /**
   * Name of the recording, under which the log keeps how far it is. Recordings of a log that run at the same time have different names. Default:
   * {@link share}, else `main`.
   */
  readonly name?: string
  /**
   * Time between two `log.tick` while nothing is recorded, in ms. While events come, they are appended each second. At least 1. Default
   * 10,000. `Infinity` for none at all: event time does not wait for this recording, and stands still if no other one ticks.
   */
  readonly tick?: number
  /**
   * How long event time waits for streams that are behind, in ms, and how long processes wait for a source that is behind alone. Then they go on
   * without them, and their events are late. At least 1; `Infinity` waits forever. Default 900,000.
   */
  readonly maxHold?: number
}

/** The lists of {@link Recording.set}. */
interface RecordedLists {
  readonly monitors?: readonly WatchedMonitor[]
  readonly taskGroups?: readonly WatchedGroup[]
  readonly runs?: readonly WatchedRun[]
  readonly findAlls?: readonly WatchedFindAll[]
}

/** A job that records until it is stopped or fails. */
export interface Recording extends LogJob {
  /**
   * Replaces lists that were given as arrays. Removed entries are unsubscribed from, new ones subscribed to, and the others stay
   * subscribed. An empty list does not end the recording.
   *
   * @throws ArgumentError for an invalid list, and for one that was given as an Observable. Nothing was changed.
   * @throws LogError when the recording has ended.
   */
  set(lists: RecordedLists): void
}

const OPTIONS = Object.keys({
  client: true,
  monitors: true,
  taskGroups: true,
  runs: true,
  findAlls: true,
  webhooks: true,
  wait: true,
  share: true,
  name: true,
  tick: true,
  maxHold: true,
} satisfies Record<keyof RecordOptions, true>)

const LISTS = ['monitors', 'taskGroups', 'runs', 'findAlls'] as const satisfies (keyof RecordedLists)[]

/** Maximum length of `name` and `share`, in characters. */
const MAX_NAME_LENGTH = 256

/** The log that a recording writes into. */
interface RecordedLog {
  readonly inbox: WebhookInbox
  readonly sharing: SharingStore
  readonly recorder: (onFailure: (error: unknown) => void, reports: RecorderReports) => Recorder
  /** Called once all sources of the recording have ended: it ticks no more. */
  readonly onDone: () => void
}

/**
 * Records monitors, groups, single and FindAll runs and webhooks into a log: each event once, in one transaction with the position of its
 * stream. Each stream resumes from its position in the log.
 */
export function record(log: RecordedLog, options: RecordOptions): Recording {
  checkOptions('options', options ?? null, OPTIONS)
  const context = contextOf(options.client)
  const { monitors = [], taskGroups = [], runs = [], findAlls = [], webhooks } = options
  const { share, name, wait, tick, maxHold } = options
  const watched = { monitors, taskGroups, runs, findAlls }
  if (wait !== undefined) checkSignal('wait', wait)
  if (share !== undefined) checkName('share', share)
  if (name !== undefined) checkName('name', name)
  if (tick !== undefined) checkTick('tick', tick)
  if (maxHold !== undefined) checkTick('maxHold', maxHold)
  if (areEmpty(watched) && webhooks === undefined) {
    const message = 'record needs monitors, taskGroups, runs, findAlls or webhooks'
    throw new ArgumentError('options', { message }, options)
  }
  if (webhooks !== undefined) checkWebhooks(webhooks, log)
  // Checks arrays at the call.
  watchedStreams(context, watched)
  return new RecordingJob(new RunningRecording(log, context, watched, options))
}

class RecordingJob extends Job implements Recording {
  readonly #running: RunningRecording

  constructor(running: RunningRecording) {
    super(running.run(), () => running.end())
    this.#running = running
  }

  set(lists: RecordedLists): void {
    this.#running.set(lists)
  }
}

class RunningRecording {
  readonly #context: Context
  readonly #recorder: Recorder
  readonly #onDone: () => void
  readonly #isShared: boolean
  readonly #drain: WebhookDrain | undefined
  readonly #clock: Clock | undefined
  readonly #parts: RecordingParts | undefined
  readonly #upstream: Upstream
  readonly #monitors: RecordedList<WatchedMonitor>
  readonly #taskGroups: RecordedList<WatchedGroup>
  readonly #runs: RecordedList<WatchedRun>
  readonly #findAlls: RecordedList<WatchedFindAll>
  readonly #ending = Promise.withResolvers<void>()
  readonly #stopping = new AbortController()
  /** The error of an append that the log has refused. */
  #failure: { readonly error: unknown } | undefined
  /** Whether lists are being replaced. */
  #isChanging = true
  /** Whether all sources have ended. */
  #isDone = false

  constructor(log: RecordedLog, context: Context, watched: WatchedStreams, options: RecordOptions) {
    const { webhooks, share, name = share ?? 'main', wait, tick = 10_000, maxHold = MAX_HOLD } = options
    const { scheduler } = context
    this.#context = context
    this.#onDone = log.onDone
    this.#isShared = share !== undefined
    const onFailure = (error: unknown) => {
      this.#failure = { error }
      this.#ending.reject(error)
    }
    const recorder = log.recorder(onFailure, {
      onPause: (pausedBy) => context.report({ kind: 'retention', pausedBy }),
      onClock: (change) => context.report({ kind: 'clock', ...change }),
    })
    this.#recorder = recorder
    recorder.ending.addEventListener('abort', () => this.end(), { once: true })
    const { signal } = this.#stopping
    // Another recording may be about to release a source, at any time.
    const waiting = share === undefined ? wait : signal
    const now = () => scheduler.now()
    const isShared = share !== undefined
    const registry = tick === Infinity ? undefined : new ProgressRegistry(recorder)
    const pauses = new Pauses(recorder.gate, scheduler)
    if (registry !== undefined) pauses.run(signal)
    const parts =
      registry &&
      new RecordingParts({
        recorder,
        registry,
        name,
        isShared,
        wait: waiting,
        pauses,
        maxHold,
        hasLists: LISTS.some((list) => options[list] !== undefined),
        isListed: () => this.#lists.every(({ isKnown }) => isKnown),
        onFailure: (error) => this.#ending.reject(error),
      })
    const drain =
      webhooks === undefined
        ? undefined
        : new WebhookDrain(context, recorder, registry, pauses, () => clock?.touch())
    const clock =
      registry &&
      new Clock({
        recorder,
        registry,
        scheduler,
        interval: tick,
        maxHold,
        parts: () => [...(parts?.own ?? []), ...(drain === undefined ? [] : [drain])],
      })
    this.#parts = parts
    this.#clock = clock
    this.#drain = drain
    this.#upstream = new Upstream({
      recorder,
      wait: waiting,
      waitsAgain: isShared,
      drain,
      parts,
      now,
      onEvent(event) {
        clock?.touch()
        drain?.saw(event)
      },
      onLeave: () => this.#endIfDone(),
    })
    const setOwn = (own: ReadonlySet<number>, partitions: Partitions) => parts?.setOwn(own, partitions)
    if (!isShared) setOwn(new Set([0]), UNDIVIDED)
    const isOwn = share === undefined ? undefined : workShare(log.sharing, share, signal, setOwn)
    const settings = { isOwn, onComplete: () => this.#endIfDone() }
    const { monitors, taskGroups, runs, findAlls } = watched
    this.#monitors = new RecordedList('monitors', monitors, { ...settings, sourceOf: monitorSource })
    this.#taskGroups = new RecordedList('taskGroups', taskGroups, { ...settings, sourceOf: groupSource })
    this.#runs = new RecordedList('runs', runs, { ...settings, sourceOf: runSource })
    this.#findAlls = new RecordedList('findAlls', findAlls, { ...settings, sourceOf: findAllSource })
  }

  /** Records until the recording ends. Rejects when it fails. */
  async run(): Promise<void> {
    this.#inBackground(this.#drain)
    this.#inBackground(this.#clock)
    const items = watchedStreams(
      this.#context,
      {
        monitors: this.#monitors.lists,
        taskGroups: this.#taskGroups.lists,
        runs: this.#runs.lists,
        findAlls: this.#findAlls.lists,
      },
      {
        from: (stream, signal, reopen) => this.#upstream.open(stream, signal, reopen),
        wake: (source) => this.#drain?.wakeOf(source),
        // A completion proves that a monitor ran.
        defaults: { include_completions: true },
      },
    )
    const subscription = subscribeUnderGate(this.#recorder.gate, undefined, items, {
      next: (item) => this.#upstream.record(item),
      error: (error: unknown) =>
        this.#ending.reject(error instanceof StreamPositionError ? unreadable(error) : error),
      // `set` may fill the lists again.
      complete: () => {},
    })
    this.#change(true, () => {})
    try {
      await this.#ending.promise
      if (this.#isDone) await this.#leave()
    } finally {
      this.#parts?.end()
      // Before the monitors end, for which webhooks wait.
      this.#stopping.abort(new LogError('the recording has ended'))
      subscription.unsubscribe()
      await this.#recorder.close()
    }
    // The last append may fail after `stop`.
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** Ends the recording. */
  end(): void {
    this.#ending.resolve()
  }

  set(given: RecordedLists): void {
    checkOptions('lists', given ?? null, LISTS)
    const { monitors, taskGroups, runs, findAlls } = given
    if (monitors !== undefined) this.#monitors.checkSettable()
    if (taskGroups !== undefined) this.#taskGroups.checkSettable()
    if (runs !== undefined) this.#runs.checkSettable()
    if (findAlls !== undefined) this.#findAlls.checkSettable()
    watchedStreams(this.#context, {
      monitors: monitors ?? [],
      taskGroups: taskGroups ?? [],
      runs: runs ?? [],
      findAlls: findAlls ?? [],
    })
    if (this.#stopping.signal.aborted) throw new LogError('the recording has ended: start another one')
    const isEmptied = LISTS.some((name) => given[name]?.length === 0)
    this.#change(!isEmptied, () => {
      if (monitors !== undefined) this.#monitors.set(monitors)
      if (taskGroups !== undefined) this.#taskGroups.set(taskGroups)
      if (runs !== undefined) this.#runs.set(runs)
      if (findAlls !== undefined) this.#findAlls.set(findAlls)
    })
  }

  /** Replaces lists, which may end the recording unless one of them is empty. */
  #change(mayEnd: boolean, effect: () => void): void {
    this.#isChanging = true
    try {
      effect()
    } finally {
      this.#isChanging = false
      if (mayEnd) this.#endIfDone()
    }
  }

  get #lists() {
    return [this.#monitors, this.#taskGroups, this.#runs, this.#findAlls]
  }

  #endIfDone(): void {
    if (this.#isShared || this.#isChanging || this.#drain !== undefined || !this.#upstream.isIdle) return
    if (this.#lists.some(({ isGrowing }) => isGrowing)) return
    // Emptied by `set`, which may fill them again.
    if (this.#lists.every(({ isEmpty }) => isEmpty)) return
    this.#isDone = true
    this.end()
  }

  /** All sources have ended: nothing is still to come. */
  async #leave(): Promise<void> {
    await this.#clock?.finish()
    await this.#parts?.forget()
    if (this.#clock !== undefined) this.#onDone()
  }

  /** Runs a job until the recording ends. */
  #inBackground(job: WebhookDrain | Clock | undefined): void {
    const { signal } = this.#stopping
    job?.run(signal).catch((error: unknown) => {
      if (signal.aborted) return
      // Another recording has its turn. All of them have the same clock.
      const hasTurns = this.#isShared || job === this.#clock
      if (hasTurns && error instanceof FencedError) this.#inBackground(job)
      else this.#ending.reject(error)
    })
  }
}

function unreadable(cause: StreamPositionError): LogError {
  const message = `the position of the stream ${cause.stream} in the log cannot be read; it was left as it is`
  return new LogError(message, { cause })
}

function checkName(argument: string, name: string): void {
  checkText(argument, name)
  // That is the inbox.
  if (name === 'webhooks') throw new ArgumentError(argument, 'another name', name)
  if (name.isWellFormed() && name.length <= MAX_NAME_LENGTH) return
  throw new ArgumentError(argument, `a well-formed text of at most ${MAX_NAME_LENGTH} characters`, name)
}

function checkWebhooks(webhooks: unknown, log: RecordedLog): void {
  if (webhooks === true) return
  const inbox: unknown = Object(webhooks).inbox
  if (inbox !== undefined && inbox === log.inbox) return
  const message =
    'webhooks must be a receiver that stores into the inbox of this log, createWebhookReceiver({ secrets, inbox: log.inbox }), or ' +
    'true where the receiver has opened the log itself, as in another process'
  throw new ArgumentError('webhooks', { message }, undefined)
}
