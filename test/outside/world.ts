import { execFile } from 'node:child_process'
import type { ExecFileException } from 'node:child_process'
import { link, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { randomOf } from '../../bench/random.ts'
import type { NatsServer } from '../real/nats/server.ts'
import type { MutantName } from '../soak/mutants.ts'
import type { Line, ProcessSettings, Role } from './journal.ts'
import { findings, missingOf } from './oracle.ts'
import type { EffectRow, Evidence } from './oracle.ts'
import { filePlace, natsPlace } from './place.ts'
import type { Place } from './place.ts'
import { nodeArguments, Session } from './session.ts'
import type { Disturbance } from './session.ts'
import { Upstream } from './upstream.ts'

const COMMAND = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** The exit code of the command while another process has claimed what it needs. */
const IN_USE = 6

/** How long all readers may see nothing more before they have seen all, and how long a process may take to stop, in ms. */
const PATIENCE = 60_000

/** The size of each state of the process on a server, in bytes: its journal is made short again and again, while others list the readers. */
const BALLAST = 250_000

/** How long the handler of the slow consumer takes for some entries, in ms. */
const HOLD = 3_000

/** What may have happened to a process, and the errors with which it may end then. */
const DISTURBANCES = {
  /** It was suspended, or another one waited for its names. */
  'taken over': ['FencedError', 'LogInUseError', 'LogConflictError'],
  /** Its server was stopped for longer than its lease. */
  'cut off': ['FencedError', 'LogInUseError', 'LogConflictError', 'LogServerError'],
  /** Its log was put back below it. */
  'put back': ['FencedError', 'LogInUseError', 'LogConflictError', 'LogServerError', 'LogPositionError'],
} as const satisfies Record<Disturbance, readonly string[]>

/** Settings of a round. */
export interface RoundOptions {
  /** Scratch space. */
  readonly folder: string
  readonly seed: number
  /** Where the log is. Default: in a file. */
  readonly server?: NatsServer | undefined
  readonly mutant?: MutantName | undefined
  readonly onStep?: (text: string) => void
}

/** Whether it ends as it may after what has happened to it. */
function isExpected({ failure, disturbances }: Session): boolean {
  const errors = [...disturbances].flatMap((each): readonly string[] => DISTURBANCES[each])
  return failure === undefined || errors.includes(failure.name)
}

/** Some roles, which run in one process. Another process may wait to take its place. */
interface Group {
  readonly roles: readonly (() => Role)[]
  readonly sessions: Session[]
}

/** A copy of the log and of the effects, of one moment. */
interface Copy {
  readonly putBackLog: () => Promise<void>
  readonly putBackEffects: () => Promise<void>
  /** Number of effects of each source at that time; undefined if the log need not have known it. */
  readonly effects: ReadonlyMap<string, number> | undefined
}

/** A log, the processes that use it, their upstream, and the operator who copies, restores and moves the log. */
export class World {
  /** How often each thing has happened. */
  readonly counts: Record<string, number> = {}
  readonly #options: RoundOptions
  readonly #random: () => number
  readonly #upstream: Upstream
  readonly #monitors: readonly string[]
  readonly #consumers: readonly string[] = ['plain', 'slow', 'shared', 'count']
  readonly #groups: readonly Group[]
  readonly #effects: string | undefined
  readonly #retention: ProcessSettings['retention']
  readonly #ballast: number
  readonly #rewoundTo: Evidence['rewoundTo'] & Map<number, Copy['effects']> = new Map()
  readonly #findings = new Set<string>()
  /** All that have run, in the order of their starts. */
  readonly #sessions: Session[] = []
  #place: Place
  #url = ''
  #names = 0
  #phase: 'begin' | 'middle' | 'end' = 'begin'
  #copy: Copy | undefined
  /** The copy that was put back and that the effects may be ahead of. */
  #restored: Copy | undefined
  #clock = 0

  constructor(options: RoundOptions) {
    this.#options = options
    this.#random = randomOf(options.seed)
    this.#monitors = Array.from({ length: 2 + this.whole(4) }, (_, i) => `m${i}`)
    const short = { maxAge: 1_000 }
    this.#retention = this.oneOf([{}, {}, short, short, { maxAge: 20_000 }, { maxBytes: 3_000_000 }])
    this.#ballast = options.server === undefined ? 0 : BALLAST
    this.#upstream = new Upstream(this.#monitors, this.#retention.maxBytes === undefined ? 100 : 12_000)
    this.#effects = this.chance(0.7) ? join(options.folder, 'effects.db') : undefined
    this.#place = this.#newPlace()
    this.#groups = this.#divided()
  }

  get findings(): readonly string[] {
    return [...this.#findings]
  }

  /** Number of events that the upstream has had. */
  get events(): number {
    return [...this.#upstream.emitted.values()].reduce((sum, { length }) => sum + length, 0)
  }

  get isFile(): boolean {
    return !this.#place.address.startsWith('nats:')
  }

  /** Whether the log may delete what effects need that were put back. */
  get hasRetention(): boolean {
    return Object.keys(this.#retention).length > 0
  }

  get hasCopy(): boolean {
    return this.#copy !== undefined
  }

  /** An integer from 0 to below this. */
  whole(below: number): number {
    return Math.floor(this.#random() * below)
  }

  chance(probability: number): boolean {
    return this.#random() < probability
  }

  oneOf<T>(items: readonly T[]): T {
    const item = items[this.whole(items.length)]
    if (item === undefined) throw new Error('there is none')
    return item
  }

  /** Starts everything. Retention begins once the log knows all of its readers. */
  async begin(): Promise<void> {
    this.#url = await this.#upstream.listen()
    for (const monitor of this.#monitors) this.#upstream.emit(monitor, 1)
    this.#startAll()
    await this.#seen('begin')
    await this.stopAll(true)
    this.#phase = 'middle'
    this.#startAll()
  }

  /** Lets the upstream have some events, and time pass. */
  async goOn(most = 400): Promise<void> {
    for (const monitor of this.#monitors) if (this.chance(0.6)) this.#upstream.emit(monitor, this.whole(30))
    await delay(this.whole(most))
    await this.#tend()
  }

  count(step: string): void {
    this.counts[step] = (this.counts[step] ?? 0) + 1
    this.#options.onStep?.(step)
  }

  /** Ends a process, which is started again. */
  async kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const group = this.oneOf(this.#groups)
    const session = group.sessions.pop()
    if (session !== undefined) await this.#end(session, signal)
  }

  /** Suspends a process for a while, and may start another one for it. */
  async suspend(duration: number): Promise<void> {
    const group = this.oneOf(this.#groups)
    const [session] = group.sessions
    if (session === undefined) return
    session.disturbances.add('taken over')
    session.suspend()
    // Two readers would write the position into the same file.
    const isReader = session.settings.roles.some(({ kind }) => kind === 'read')
    if (this.chance(0.5) && !isReader && group.sessions.length === 1)
      this.#start(group).disturbances.add('taken over')
    await this.goOn(duration)
    await delay(duration)
    session.resume()
  }

  /** Stops the server for a while. Its log stays. */
  async cutOff(duration: number): Promise<void> {
    this.#disturb('cut off')
    await this.#options.server?.kill()
    await delay(duration)
    await this.#options.server?.resume()
  }

  /** Sets the wall clock of one process or of all, for a moment or until it is set again. */
  async jump(offset: number): Promise<void> {
    const all = this.#groups.flatMap(({ sessions }) => sessions)
    const sessions = this.chance(0.5) || all.length === 0 ? all : [this.oneOf(all)]
    if (sessions === all) this.#clock = offset
    for (const session of sessions) session.setClock(offset)
    await this.goOn()
    await delay(300)
    if (this.chance(0.6)) this.#resetClocks()
  }

  /** Ends all processes. Returns whether each has ended in order, so that all of it is saved. */
  async stopAll(isOrderly: boolean): Promise<boolean> {
    const sessions = this.#groups.flatMap((group) => group.sessions.splice(0))
    const ended = await Promise.all(
      sessions.map((session) => this.#end(session, isOrderly ? 'SIGTERM' : 'SIGKILL')),
    )
    return ended.every(Boolean)
  }

  /** Copies the log, and the effects, while nothing has them open. */
  async copy(): Promise<void> {
    const isSaved = await this.stopAll(this.chance(0.5))
    this.#copy = {
      putBackLog: await this.#place.copy(),
      putBackEffects: await filePlace(this.#options.folder, 'effects').copy(),
      effects: isSaved ? this.#effectCounts() : undefined,
    }
  }

  /** Puts a copy in the place of the log, of the effects, or of both. Positions elsewhere stay. */
  async putBack(what: 'log' | 'effects' | 'both'): Promise<void> {
    // A server may be put back while processes use it, which have to notice.
    const isBelow = !this.isFile && what === 'log' && this.chance(0.4)
    if (isBelow) this.#disturb('put back')
    else await this.stopAll(this.chance(0.5))
    if (what !== 'effects') await this.#copy?.putBackLog()
    if (what !== 'log') await this.#copy?.putBackEffects()
    // The two are of one moment otherwise.
    this.#restored = what === 'both' ? undefined : this.#copy
    // Either the recorder or the readers may be first.
    const [first, ...others] = this.#groups.toSorted(() => this.#random() - 0.5)
    if (first?.sessions.length === 0) await this.#reported(this.#start(first), 'open')
    await this.goOn(1_500)
    for (const group of others) if (group.sessions.length === 0) this.#start(group)
  }

  /** Moves the log with the command. It is refused without the effects of its consumers, and while one of the two is put back. */
  async migrate(): Promise<void> {
    await this.stopAll(true)
    const target = this.#newPlace(this.chance(0.5))
    const effects = this.#effectRows().length > 0 ? this.#effects : undefined
    const isLeftBehind = effects !== undefined && this.chance(0.2)
    const place = ['--log', this.#place.address, '--to', target.address]
    const named = effects !== undefined && !isLeftBehind ? ['--effects', effects] : []
    const { code, errors } = await this.#command('migrate', ...place, ...named)
    const isRefused = code !== 0
    const mayRefuse = isLeftBehind || this.#restored !== undefined
    if (isRefused && !(mayRefuse && errors.includes('effects'))) this.#find(`migrate failed: ${errors}`)
    if (!isRefused && isLeftBehind) this.#find('migrate copied a log without the effects of its consumer')
    if (isRefused || isLeftBehind) return
    if (named.length > 0) this.count('effects moved')
    this.#place = target
    this.#copy = undefined
  }

  /** Opens the log by a second path, which has to be refused. */
  async openLinked(): Promise<void> {
    // A process that opens it now is refused too.
    for (const { sessions } of this.#groups)
      for (const session of sessions) await this.#reported(session, 'open')
    const other = join(this.#options.folder, `linked-${this.#sessions.length}.db`)
    await link(this.#place.address, other)
    const session = this.#session(other, [{ kind: 'record' }], 'linked')
    await this.#reported(session, 'open')
    const { failure } = session
    if (failure?.name !== 'LogFileError')
      this.#find(`a second path was opened: ${failure?.text ?? 'no error'}`)
    await session.end('SIGKILL')
    for (const suffix of ['', '-wal', '-shm']) await rm(`${other}${suffix}`, { force: true })
  }

  /** Mends all, waits until everybody has seen everything, stops, reads the whole log, and asks the oracle. */
  async end(): Promise<void> {
    this.#phase = 'end'
    await this.stopAll(this.chance(0.5))
    this.#resetClocks()
    // The last event of each source comes after all that was put back.
    for (const monitor of this.#monitors) this.#upstream.emit(monitor, 1)
    await this.#seen('end')
    await this.stopAll(true)
    if (this.#findings.size > 0) return
    const audit = this.#session(
      this.#place.address,
      [{ kind: 'audit', name: 'audit', process: 'count' }],
      'audit',
    )
    if (!(await this.#reported(audit, 'done'))) this.#find(`the log cannot be read: ${audit.failure?.text}`)
    await audit.end('SIGKILL')
    for (const finding of findings({ ...this.#evidence(), audit: audit.lines })) this.#find(finding)
  }

  /** Kills what runs. */
  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.end('SIGKILL')))
    await this.#upstream.close()
  }

  /** Waits until every role has seen every event, and time has passed for the process. */
  async #seen(when: string): Promise<void> {
    let deadline = performance.now() + PATIENCE
    for (let seen = 0; ;) {
      await this.#tend()
      const evidence = this.#evidence()
      const missing = missingOf(evidence)
      const entries = evidence.journals.flat().filter(({ kind }) => kind === 'entry').length
      if (entries > seen) deadline = performance.now() + PATIENCE
      seen = entries
      if (missing.length === 0 || this.#findings.size > 0) return
      if (performance.now() > deadline) return this.#find(`stuck at the ${when}: ${missing.join('; ')}`)
      await delay(200)
    }
  }

  /** Waits until a process has written such a line, or has ended. Returns whether it has. */
  async #reported(session: Session, kind: Line['kind']): Promise<boolean> {
    const isReported = () => session.lines.some((line) => line.kind === kind)
    const deadline = performance.now() + PATIENCE
    while (!isReported() && !session.hasExited && performance.now() < deadline) await delay(20)
    return isReported()
  }

  /** Looks after processes that have ended by themselves, and starts what does not run. */
  async #tend(): Promise<void> {
    for (const group of this.#groups) {
      for (const session of group.sessions.filter(({ hasExited }) => hasExited)) {
        group.sessions.splice(group.sessions.indexOf(session), 1)
        await this.#judge(session, group)
      }
      if (group.sessions.length === 0) this.#start(group)
    }
  }

  async #judge(session: Session, group: Group): Promise<void> {
    const { failure } = session
    if (failure === undefined) return this.#find('a process has ended by itself')
    const { role, name, text } = failure
    this.#options.onStep?.(`${role} has ended with ${name}`)
    // Its place, its claim or a dead letter is of a state of the log that was lost, and the error says what to do.
    const isRefused = text.includes('rivulet log rewind') && this.#restored !== undefined
    if (role === 'effects' && isRefused) return this.#rewind(group)
    if (!isExpected(session)) this.#find(`${role} has ended with ${name}: ${text}`)
  }

  /** Does what the docs say for effects that are ahead of a log that was put back. */
  async #rewind(group: Group): Promise<void> {
    for (const session of group.sessions.splice(0)) await this.#end(session, 'SIGKILL')
    const place = ['--log', this.#place.address, '--consumer', 'effects', '--effects', this.#effects ?? '']
    const { code, errors } = await this.#command('rewind', ...place)
    if (code !== 0) return this.#find(`rewind failed: ${errors}`)
    this.count('rewind')
    this.#rewoundTo.set(this.#rewoundTo.size + 1, this.#restored?.effects)
    this.#restored = undefined
  }

  #disturb(disturbance: Disturbance): void {
    for (const { sessions } of this.#groups)
      for (const session of sessions) session.disturbances.add(disturbance)
  }

  #startAll(): void {
    for (const group of this.#groups) this.#start(group)
  }

  #start(group: Group): Session {
    const roles = group.roles.map((role) => role())
    const session = this.#session(this.#place.address, roles, 'session')
    group.sessions.push(session)
    return session
  }

  #session(log: string, roles: readonly Role[], name: string): Session {
    const settings = {
      log,
      roles,
      retention: this.#phase === 'begin' ? {} : this.#retention,
      upstream: this.#url,
      monitors: this.#monitors,
      journal: join(this.#options.folder, `${name}-${this.#sessions.length}.ndjson`),
    }
    const session = new Session(settings, this.#clock, this.#options.mutant)
    this.#sessions.push(session)
    return session
  }

  /** Returns whether it has ended in order. */
  async #end(session: Session, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
    const killing = setTimeout(() => {
      this.#find('a process did not stop')
      void session.giveUp()
    }, PATIENCE)
    await session.end(signal)
    clearTimeout(killing)
    // One that was refused just before is judged by its successor.
    const isRefused = session.failure?.text.includes('rivulet log rewind') && this.#restored !== undefined
    if (!isRefused && !isExpected(session)) this.#find(`${session.failure?.role}: ${session.failure?.text}`)
    return session.isOrderly
  }

  #resetClocks(): void {
    this.#clock = 0
    for (const { sessions } of this.#groups) for (const session of sessions) session.setClock(0)
  }

  /** The roles, divided among two to four processes at random. */
  #divided(): Group[] {
    const { folder } = this.#options
    const consumer = (name: string) => (): Role => {
      const isSlow = name === 'slow'
      const hold = isSlow && this.#phase === 'middle' ? HOLD : 0
      return { kind: 'consume', name, pause: isSlow ? 4 : 0, hold, share: name === 'shared' }
    }
    const roles: (() => Role)[] = [
      () => ({ kind: 'record' }),
      consumer('plain'),
      consumer('slow'),
      consumer('shared'),
      () => ({ kind: 'process', name: 'count', ballast: this.#ballast }),
      () => ({ kind: 'watch', name: 'watch' }),
      () => ({ kind: 'read', name: 'reader', file: join(folder, 'position') }),
    ]
    const file = this.#effects
    if (file !== undefined)
      roles.push(() => {
        const isFailing = this.#phase === 'middle' && this.chance(0.5)
        return { kind: 'effects', name: 'effects', file, generation: this.#rewoundTo.size, isFailing }
      })
    const groups = Array.from({ length: 2 + this.whole(3) }, (): (() => Role)[] => [])
    for (const role of roles) this.oneOf(groups).push(role)
    return groups.filter(({ length }) => length > 0).map((each) => ({ roles: each, sessions: [] }))
  }

  #newPlace(isFile = false): Place {
    const { server, folder } = this.#options
    this.#names += 1
    if (server === undefined || isFile) return filePlace(folder, `log-${this.#names}`)
    return natsPlace(server, `log-${this.#options.seed}-${this.#names}`)
  }

  #evidence(): Omit<Evidence, 'audit'> {
    const { maxAge, maxBytes } = this.#retention
    return {
      emitted: this.#upstream.emitted,
      journals: this.#sessions.map(({ lines }) => lines),
      consumers: this.#consumers,
      readers: ['reader'],
      effects: this.#effects === undefined ? undefined : this.#effectRows(),
      rewoundTo: this.#rewoundTo,
      maxAge,
      isSmall: maxBytes !== undefined,
    }
  }

  #effectRows(): EffectRow[] {
    if (this.#effects === undefined) return []
    try {
      using database = new DatabaseSync(this.#effects, { readOnly: true })
      const rows = database.prepare('SELECT source, n, generation FROM effect ORDER BY rowid').all()
      return rows.map(({ source, n, generation }) => {
        return { source: String(source), n: Number(n), generation: Number(generation) }
      })
    } catch {
      // Its process has not begun.
      return []
    }
  }

  #effectCounts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { source, n } of this.#effectRows())
      counts.set(source, Math.max(n + 1, counts.get(source) ?? 0))
    return counts
  }

  /** Runs `rivulet log`, again while the lease of a process that has died makes it wait. */
  async #command(...args: readonly string[]): Promise<{ readonly code: number; readonly errors: string }> {
    const { mutant } = this.#options
    const program = [...nodeArguments(mutant), COMMAND, 'log', ...args]
    const env = { ...process.env, SOAK_MUTANT: mutant ?? '' }
    for (const deadline = performance.now() + PATIENCE; ; await delay(200)) {
      const [error, errors] = await new Promise<[ExecFileException | null, string]>((resolve) => {
        execFile(process.execPath, program, { env }, (failure, _, text) => resolve([failure, text]))
      })
      const code = error === null ? 0 : Number(error.code ?? 1)
      if (code !== IN_USE || performance.now() > deadline) return { code, errors }
    }
  }

  #find(finding: string): void {
    this.#findings.add(finding)
    this.#options.onStep?.(`found: ${finding}`)
  }
}
