import { defer, EMPTY, finalize, from, mergeMap, of, repeat, Subject, takeUntil } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkOptions, checkSignal, checkText, checkWait } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { subscribeUnderGate } from '../protocol/gate.ts'
import type { WebhookInbox } from '../protocol/webhook.ts'
import { FencedError, LogError } from '../log/errors.ts'
import type { EventLog } from '../log/event-log.ts'
import { Job } from '../log/job.ts'
import type { LogJob } from '../log/job.ts'
import type { OpenOptions, RecordedStream, Recorder } from '../log/record/recorder.ts'
import type { Context } from './context.ts'
import { Clock } from './record/clock.ts'
import type { FollowedMonitor } from './record/followed-monitor.ts'
import { Reachability } from './record/reachability.ts'
import { RecordedList } from './record/recorded-list.ts'
import { streamTracking } from './record/stream-tracking.ts'
import { WebhookDrain } from './record/webhook-drain.ts'
import { WorkShare } from './record/work-share.ts'
import { areEmpty, watchedStreams } from './watched-streams.ts'
import type {
  OpenMember,
  Watched,
  WatchedFindAll,
  WatchedGroup,
  WatchedMonitor,
  WatchedRun,
} from './watched-streams.ts'

/** A receiver of webhooks whose inbox belongs to a log. */
export interface RecordedWebhooks {
  readonly inbox: WebhookInbox | undefined
}

/** Options of `client.record`. At least one of `monitors`, `taskGroups`, `runs`, `findAlls` and `webhooks` is required. */
export interface RecordOptions {
  /**
   * Executions without news are recorded too, as `monitor.completion`. With `include_completions: false` they are not listed
   * (§4.1), and only those that webhooks bring are recorded.
   */
  readonly monitors?: Watched<WatchedMonitor>
  /** Runs come with their output unless `include_output` is false. */
  readonly taskGroups?: Watched<WatchedGroup>
  /** Ids of single runs. A run that has ended is not requested again by a later recording. */
  readonly runs?: Watched<WatchedRun>
  /** Ids of FindAll runs. A run that has ended is not requested again by a later recording, unless its `until` is `closed`. */
  readonly findAlls?: Watched<WatchedFindAll>
  /**
   * Records the webhooks of the log's inbox: the receiver with `log.inbox`, or true if it runs in another process. The recording
   * then runs until it is stopped. One recording of a log does this at a time; the next one waits until it ends.
   */
  readonly webhooks?: RecordedWebhooks | true
  /** The log to record into. */
  readonly log: EventLog
  /**
   * Waits for streams that another recording has, until this signal is aborted. Default: such a stream is a `LogInUseError`. Without effect
   * with {@link share}, which always waits.
   */
  readonly wait?: AbortSignal
  /**
   * Divides the sources with all other recordings of the log that have this name here, in any number of processes, and with the same lists:
   * each source is recorded by one of them. A process that joins takes over its share; if a process stops, or dies and its lease runs out,
   * the others take over its share. The recording runs until it is stopped, waits for a source that another recording has, and continues
   * with its share after it was suspended for longer than its lease. Default: this recording has all of its sources.
   *
   * ```ts
   * import { createClient, memoryLog, openLog } from 'rivulet'
   *
   * const log = await openLog(memoryLog())
   * const recording = createClient().record({ monitors: ['monitor_1', 'monitor_2'], share: 'monitors', log })
   * ```
   */
  readonly share?: string
  /** How long nothing is recorded before a `log.tick` is appended, in ms; `Infinity` for never. At least 1. Default 10,000. */
  readonly tick?: number
}

/** The lists of {@link Recording.set}. */
export interface RecordedLists {
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
  monitors: true,
  taskGroups: true,
  runs: true,
  findAlls: true,
  webhooks: true,
  log: true,
  wait: true,
  share: true,
  tick: true,
} satisfies Record<keyof RecordOptions, true>)

const LISTS = Object.keys({ monitors: true, taskGroups: true, runs: true, findAlls: true } satisfies Record<
  keyof RecordedLists,
  true
>)

/** Options of monitors. A completion proves that a monitor ran. */
const MONITOR_DEFAULTS = { include_completions: true }

/**
 * Records monitors, groups, single and FindAll runs and webhooks into a log: each event once, in one transaction with the position of its
 * stream. Each stream resumes from its position in the log.
 *
 * `done` resolves when the lists have completed, every group and run is done and every monitor is cancelled, and when the
 * log is closed. It rejects with a `LogInUseError` if another recording has one of the streams, with the reason of `wait` if that is
 * aborted first, with the error of an append that the log refuses, and with the errors of `client.watch`.
 */
export function record(context: Context, options: RecordOptions): Recording {
  checkOptions('options', options ?? null, OPTIONS)
  const {
    monitors = [],
    taskGroups = [],
    runs = [],
    findAlls = [],
    webhooks,
    log,
    share,
    wait: givenWait,
    tick = 10_000,
  } = options
  // Another recording may be about to release a source, at any time.
  const wait = share === undefined ? givenWait : new AbortController().signal
  const watched = { monitors, taskGroups, runs, findAlls }
  checkLog(log)
  if (givenWait !== undefined) checkSignal('wait', givenWait)
  if (share !== undefined) checkText('share', share)
  checkWait('tick', tick, true)
  if (tick < 1) throw new ArgumentError('tick', 'a number of milliseconds of at least 1', tick)
  if (areEmpty(watched) && webhooks === undefined) {
    const message = 'record needs monitors, taskGroups, runs, findAlls or webhooks'
    throw new ArgumentError('options', { message }, options)
  }
  if (webhooks !== undefined) checkWebhooks(webhooks, log)
  // Checks arrays at the call.
  watchedStreams(context, watched, checking)

  const ending = Promise.withResolvers<void>()
  let failure: { readonly error: unknown } | undefined
  const recorder = log.recorder(
    (error) => {
      failure = { error }
      ending.reject(error)
    },
    {
      onPause: (pausedBy) => context.report({ kind: 'retention', pausedBy }),
      onClock: (change) => context.report({ kind: 'clock', ...change }),
    },
  )
  const { scheduler } = context
  const startedAt = scheduler.now()
  const clock = tick === Infinity ? undefined : new Clock(recorder, scheduler, tick)
  const touch = () => clock?.touch()
  const drain = webhooks === undefined ? undefined : new WebhookDrain(context, recorder, touch)
  const onEvent = (event: ResearchEvent) => {
    touch()
    drain?.saw(event)
  }

  /** Number of subscribed members. */
  let members = 0
  let isChanging = true
  const endIfDone = () => {
    if (
      share !== undefined ||
      isChanging ||
      drain !== undefined ||
      members > 0 ||
      lists.some(({ isGrowing }) => isGrowing)
    )
      return
    // Emptied by `set`, which may fill them again.
    if (lists.every((list) => list.isEmpty)) return
    ending.resolve()
  }
  const monitorList = new RecordedList('monitors', monitors, endIfDone)
  const groupList = new RecordedList('taskGroups', taskGroups, endIfDone)
  const runList = new RecordedList('runs', runs, endIfDone)
  const findAllList = new RecordedList('findAlls', findAlls, endIfDone)
  const lists = [monitorList, groupList, runList, findAllList]
  /** Replaces lists, which may end the recording unless one of them is empty. */
  const change = (mayEnd: boolean, effect: () => void) => {
    isChanging = true
    try {
      effect()
    } finally {
      isChanging = false
      if (mayEnd) endIfDone()
    }
  }

  const open = (
    { source, names, isPolled }: Parameters<OpenMember>[0],
    project: Parameters<OpenMember>[1],
    onFenced?: () => void,
  ) =>
    defer(() => {
      members += 1
      const leaving = new AbortController()
      const fenced = new Subject<void>()
      const reachability = new Reachability(source, () => scheduler.now())
      let monitor: FollowedMonitor | undefined
      const follow = () => (monitor ??= isPolled ? drain?.follow(source) : undefined)
      // While another recorder has the stream, webhooks do not wait for it.
      if (wait === undefined) follow()
      const settings: OpenOptions = {
        wait,
        signal: leaving.signal,
        onFenced:
          onFenced &&
          (() => {
            onFenced()
            fenced.next()
          }),
      }
      return from(openAll(recorder, names, settings)).pipe(
        mergeMap((byName) => {
          follow()
          return project((name, ignores = () => false) => {
            const stream = byName.get(name)
            if (stream === undefined) return undefined
            return streamTracking({ stream, reachability, startedAt, ignores, monitor, onEvent })
          })
        }),
        takeUntil(fenced),
        // Also closes the streams that are open or being opened if another one of these names could not be opened.
        finalize(() => {
          leaving.abort()
          if (monitor !== undefined) drain?.unfollow(source, monitor)
          members -= 1
          endIfDone()
        }),
      )
    })
  /** Waits for the streams anew after another recording has claimed them, as when this process was suspended. */
  const reopening: OpenMember = (member, project) =>
    defer(() => {
      let isFenced = false
      const onFenced = () => (isFenced = true)
      const whileClaimed = defer(() => {
        isFenced = false
        return open(member, project, onFenced)
      })
      return whileClaimed.pipe(repeat({ delay: () => (isFenced ? of(true) : EMPTY) }))
    })
  const stopping = new AbortController()
  const work = share === undefined ? undefined : new WorkShare(log, share, stopping.signal)
  const openOwn: OpenMember = (member, project) =>
    work?.whileOwn(member.source, reopening(member, project)) ?? open(member, project)
  const streams = watchedStreams(
    context,
    {
      monitors: monitorList.lists,
      taskGroups: groupList.lists,
      runs: runList.lists,
      findAlls: findAllList.lists,
    },
    openOwn,
    MONITOR_DEFAULTS,
  )
  /** Runs in the background until the recording ends. */
  const background = (job: { run(signal: AbortSignal): Promise<void> } | undefined) => {
    job?.run(stopping.signal).catch((error: unknown) => {
      if (stopping.signal.aborted) return
      // Another recording has its turn.
      if (work !== undefined && error instanceof FencedError) background(job)
      else ending.reject(error)
    })
  }
  background(drain)
  background(clock)
  const subscription = subscribeUnderGate(recorder.gate, undefined, streams, {
    next: () => {},
    error: ending.reject,
    complete: () => {},
  })
  change(true, () => {})
  recorder.ending.addEventListener('abort', () => ending.resolve(), { once: true })
  const finish = async () => {
    try {
      await ending.promise
    } finally {
      // Before the monitors end, for which webhooks wait.
      stopping.abort(new LogError('the recording has ended'))
      subscription.unsubscribe()
      await recorder.close()
    }
    // The last append may fail after `stop`.
    if (failure !== undefined) throw failure.error
  }
  return new RecordingJob(
    finish(),
    () => ending.resolve(),
    (given) => {
      checkOptions('lists', given ?? null, LISTS)
      if (given.monitors !== undefined) monitorList.checkSettable()
      if (given.taskGroups !== undefined) groupList.checkSettable()
      if (given.runs !== undefined) runList.checkSettable()
      if (given.findAlls !== undefined) findAllList.checkSettable()
      const { monitors: newMonitors = [], taskGroups: newGroups = [] } = given
      const { runs: newRuns = [], findAlls: newFindAlls = [] } = given
      const newLists = { monitors: newMonitors, taskGroups: newGroups, runs: newRuns, findAlls: newFindAlls }
      watchedStreams(context, newLists, checking)
      if (stopping.signal.aborted) throw new LogError('the recording has ended: start another one')
      const isEmptied = [given.monitors, given.taskGroups, given.runs, given.findAlls].some(
        (list) => list?.length === 0,
      )
      change(!isEmptied, () => {
        if (given.monitors !== undefined) monitorList.set(given.monitors)
        if (given.taskGroups !== undefined) groupList.set(given.taskGroups)
        if (given.runs !== undefined) runList.set(given.runs)
        if (given.findAlls !== undefined) findAllList.set(given.findAlls)
      })
    },
  )
}

class RecordingJob extends Job implements Recording {
  readonly set: (lists: RecordedLists) => void

  constructor(done: Promise<void>, stop: () => void, set: (lists: RecordedLists) => void) {
    super(done, stop)
    this.set = set
  }
}

/**
 * Opens the streams of one member, by their names. One after the other: two recordings that wait would each have one of them
 * otherwise, and wait forever.
 */
async function openAll(
  recorder: Recorder,
  names: readonly string[],
  options: OpenOptions,
): Promise<ReadonlyMap<string, RecordedStream>> {
  const streams = new Map<string, RecordedStream>()
  for (const name of names) streams.set(name, await recorder.open(name, options))
  return streams
}

/** Checks the options of a member, and subscribes to nothing. */
const checking: OpenMember = (_, project) => project(() => undefined)

function checkLog(log: unknown): void {
  const { recorder }: Partial<EventLog> = Object(log)
  if (typeof recorder !== 'function') throw new ArgumentError('log', 'an open log: await openLog(…)', log)
}

function checkWebhooks(webhooks: unknown, log: EventLog): void {
  if (webhooks === true) return
  const inbox: unknown = Object(webhooks).inbox
  if (inbox !== undefined && inbox === log.inbox) return
  const message =
    'webhooks must be a receiver that stores into the inbox of this log, createWebhookReceiver({ secrets, inbox: log.inbox }), or ' +
    'true where the receiver has opened the log itself, as in another process'
  throw new ArgumentError('webhooks', { message }, undefined)
}
