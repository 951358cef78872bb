/** A defect of the engine: a text of one of its files, and what stands in its place. */
export interface EngineMutant {
  /** The kind of rule whose property has to fail. */
  readonly kind: string
  /** Below `src/rules/evaluate/`. */
  readonly file: string
  readonly text: string
  readonly replacement: string
}

/** At least one for each kind of window, and for the alert's state and the order of events. */
export const ENGINE_MUTANTS: Readonly<Record<string, EngineMutant>> = {
  'a count holds for one more': {
    kind: 'count',
    file: 'windows/count.ts',
    text: 'this.#count(state, time) >= this.#needed',
    replacement: 'this.#count(state, time) > this.#needed',
  },
  'an event leaves a count 1 ms late': {
    kind: 'count',
    file: 'windows/count.ts',
    text: 'return decisive === undefined ? undefined : decisive + this.#over',
    replacement: 'return decisive === undefined ? undefined : decisive + this.#over + 1',
  },
  'a rate is rounded down': {
    kind: 'rate',
    file: 'windows/count.ts',
    text: 'const needed = Math.ceil(',
    replacement: 'return Math.floor(',
  },
  'a repeated value is another one': {
    kind: 'distinct',
    file: 'windows/window.ts',
    text: 'if (known >= 0) {',
    replacement: 'if (known > 0) {',
  },
  'a repeated value stays at its first time': {
    kind: 'distinct',
    file: 'windows/window.ts',
    text: 'const known = hashes.indexOf(hash)',
    replacement: 'const known = hashes.indexOf(hash); if (known >= 0) return true',
  },
  'a spike compares with one ms more': {
    kind: 'spike',
    file: 'windows/spike.ts',
    text: 'const before = upTo(times, time - this.#over)',
    replacement: 'const before = upTo(times, time - this.#over - 1)',
  },
  'a spike needs more than its factor': {
    kind: 'spike',
    file: 'windows/spike.ts',
    text: 'times.length - before >= Math.max(',
    replacement: 'times.length - before > Math.max(',
  },
  'a number leaves a sum 1 ms late': {
    kind: 'sum',
    file: 'windows/aggregate.ts',
    text: 'first + this.#bounds.over',
    replacement: 'first + this.#bounds.over + 1',
  },
  'a sum begins with its last number': {
    kind: 'sum',
    file: 'windows/aggregate.ts',
    text: 'numbers.reduce(',
    replacement: 'numbers.toReversed().reduce(',
  },
  'an average without numbers is 0': {
    kind: 'avg',
    file: 'windows/aggregate.ts',
    text: 'within.length === 0 ? null',
    replacement: 'within.length === 0 ? 0',
  },
  'a smaller number outdoes a greater one': {
    kind: 'max',
    file: 'windows/aggregate.ts',
    text: 'later >= earlier',
    replacement: 'later <= earlier',
  },
  'a minimum that is its bound is beyond it': {
    kind: 'min',
    file: 'windows/aggregate.ts',
    text: 'value <= lte',
    replacement: 'value < lte',
  },
  'a percentile is that of the next rank': {
    kind: 'percentile',
    file: 'windows/aggregate.ts',
    text: 'rankOf(p, numbers.length) - 1',
    replacement: 'rankOf(p, numbers.length)',
  },
  'one window of several is enough': {
    kind: 'several',
    file: 'timeline.ts',
    text: 'this.#windows.every(([window, own]) => window.holds',
    replacement: 'this.#windows.some(([window, own]) => window.holds',
  },
  'of a list only the first member is a value': {
    kind: 'new',
    file: 'windows/new.ts',
    text: 'index + 1 < match.length',
    replacement: 'index < 1',
  },
  'a value is new one ms early': {
    kind: 'new',
    file: 'windows/new.ts',
    text: 'dropUpTo(state, time - this.#within - 1)',
    replacement: 'dropUpTo(state, time - this.#within)',
  },
  'the first value is a change': {
    kind: 'changed',
    file: 'windows/changed.ts',
    text: 'before !== undefined && before !== value',
    replacement: 'before !== value',
  },
  'a sequence goes on after it was complete': {
    kind: 'sequence',
    file: 'windows/sequence.ts',
    text: 'if (complete === undefined) return false\n    state.chains = []',
    replacement: 'if (complete === undefined) return false',
  },
  'a sequence may take 1 ms less': {
    kind: 'sequence',
    file: 'windows/sequence.ts',
    text: 'time - before.span[0] > this.#within) continue',
    replacement: 'time - before.span[0] >= this.#within) continue',
  },
  'the latest completion waits for not_then': {
    kind: 'not_then',
    file: 'windows/sequence.ts',
    text: 'state.completed ??= complete',
    replacement: 'state.completed = complete',
  },
  'an event of not_then does not settle': {
    kind: 'not_then',
    file: 'windows/sequence.ts',
    text: '!== 0) state.completed = null',
    replacement: '< 0) state.completed = null',
  },
  'a source is absent 1 ms late': {
    kind: 'absence',
    file: 'absence.ts',
    text: 'const absent = time + this.#within',
    replacement: 'const absent = time + this.#within + 1',
  },
  'a lost source is absent': {
    kind: 'absence',
    file: 'absence.ts',
    text: 'if (isAbsent || sourceStatus !== undefined ||',
    replacement: 'if (isAbsent ||',
  },
  'a source that is live again begins anew': {
    kind: 'absence',
    file: 'absence.ts',
    text: "else if (state.sourceStatus === 'lost') this.#waitUntil(now)",
    replacement: "else if (state.sourceStatus === 'lost') this.#waitUntil(now + within)",
  },
  'entries that are gone had no reports': {
    kind: 'absence',
    file: 'absence.ts',
    text: 'state.absentAt - this.#within < this.#gap',
    replacement: 'false',
  },
  'a report ends the silence when it is recorded': {
    kind: 'absence',
    file: 'absence.ts',
    text: 'this.#step(Math.max(time, state.trueSince ?? time), false)',
    replacement: 'this.#step(this.#context.now(), false)',
  },
  'events that are still to come were no reports': {
    kind: 'absence',
    file: 'absence.ts',
    text: 'if (!this.#context.complete) {',
    replacement: 'if (false) {',
  },
  'an alert that is unknown stays pending': {
    kind: 'absence',
    file: 'key-alert.ts',
    text: 'if (state.fired === undefined) this.end()\n',
    replacement: '\n',
  },
  'deadlines do not wait for late events': {
    kind: 'count',
    file: 'timeline.ts',
    text: 'this.#advance(due - this.#prepared.rule.lateness)',
    replacement: 'this.#advance(due)',
  },
  'events are applied as they come': {
    kind: 'changed',
    file: 'timeline.ts',
    text: 'if (isHeld(this.#prepared)) return true',
    replacement: '',
  },
  'events of one time are applied in any order': {
    kind: 'changed',
    file: 'held-event.ts',
    text: "['at', ...texts, ",
    replacement: "['at', ",
  },
  'an event that has waited comes after the deadlines that follow it': {
    kind: 'count',
    file: 'held-event.ts',
    text: "['at', ",
    replacement: "['later', ",
  },
  'a fuller revision counts again': {
    kind: 'match',
    file: 'timeline.ts',
    text: 'if (counted.includes(identity)) return true',
    replacement: '',
  },
  'for takes 1 ms less': {
    kind: 'match',
    file: 'key-alert.ts',
    text: 'time >= firesAt(state.trueSince, state, rule)',
    replacement: 'time >= firesAt(state.trueSince, state, rule) - 1',
  },
  'an alert is not kept when its level ends': {
    kind: 'match',
    file: 'key-alert.ts',
    text: 'return time >= state.falseSince + rule.keepFiringFor',
    replacement: 'return time >= state.falseSince',
  },
  'a gap of the source does not begin `for` again': {
    kind: 'match',
    file: 'key-alert.ts',
    text: 'Math.max(since, gap) + rule.for',
    replacement: 'since + rule.for',
  },
  'a gap begins the `for` again of an alert that is to begin': {
    kind: 'count',
    file: 'key-alert.ts',
    text: 'Math.max(since, gap) + rule.for',
    replacement: 'gap + rule.for',
  },
  'a gap is forgotten once no window reaches over it': {
    kind: 'match',
    file: 'timeline.ts',
    text: 'gap + Math.max(reach, rule.for)',
    replacement: 'gap + reach',
  },
  'a gap is forgotten once it has begun `for` again': {
    kind: 'sum',
    file: 'timeline.ts',
    text: 'gap + Math.max(reach, rule.for)',
    replacement: 'gap + rule.for',
  },
  'a window over a gap is complete': {
    kind: 'distinct',
    file: 'timeline.ts',
    text: 'gap <= time - reach',
    replacement: 'true',
  },
  'a change is incomplete after a gap': {
    kind: 'changed',
    file: 'timeline.ts',
    text: '(reach === 0 || gap <= time - reach)',
    replacement: 'gap <= time - reach',
  },
  'a spike reaches over one window': {
    kind: 'spike',
    file: 'prepared-rule.ts',
    text: 'return 2 * window.over',
    replacement: 'return window.over',
  },
  'a sequence with not_then reaches over one window': {
    kind: 'not_then',
    file: 'prepared-rule.ts',
    text: 'window.notThen === undefined ? window.within : 2 * window.within',
    replacement: 'window.within',
  },
  'a sequence reaches over two windows': {
    kind: 'sequence',
    file: 'prepared-rule.ts',
    text: 'window.notThen === undefined ? window.within : 2 * window.within',
    replacement: '2 * window.within',
  },
  'of several windows the first one reaches over a gap': {
    kind: 'several',
    file: 'prepared-rule.ts',
    text: 'Math.max(0, ...rule.windows.map(reachOf))',
    replacement: 'Math.max(0, ...rule.windows.slice(0, 1).map(reachOf))',
  },
  'an alert that ends says whether its windows are complete then': {
    kind: 'rate',
    file: 'key-alert.ts',
    text: "change === 'resolved' ? state.fired?.complete !== false : isComplete",
    replacement: 'isComplete',
  },
  'a sequence waits for not_then over a gap': {
    kind: 'not_then',
    file: 'timeline.ts',
    text: 'if (this.#giveUp() || state.undecidedUntil !== undefined)',
    replacement: 'if (false)',
  },
  'a sequence of before a gap that is applied after it waits for not_then': {
    kind: 'not_then',
    file: 'timeline.ts',
    text: 'time < state.gap && this.#giveUp()',
    replacement: 'false',
  },
  'an alert is known again before the gap': {
    kind: 'not_then',
    file: 'timeline.ts',
    text: '!this.#context.complete || time < (state.gap ?? -Infinity)',
    replacement: '!this.#context.complete',
  },
  'a gap concerns rules with other keys': {
    kind: 'min',
    file: 'prepared-rule.ts',
    text: "first?.value.text.trim() === 'source' &&",
    replacement: '',
  },
  'a gap is an event, and counts as a gap too': {
    kind: 'max',
    file: 'prepared-rule.ts',
    text: "types?.has('stream.gap') !== true",
    replacement: 'true',
  },
  'to a rule that reads everything, a gap is only an event': {
    kind: 'count',
    file: 'prepared-rule.ts',
    text: "types?.has('stream.gap') !== true",
    replacement: "types?.has('stream.gap') === false",
  },
  'a gap counts at its first time': {
    kind: 'avg',
    file: 'timeline.ts',
    text: 'state.gap = Math.max(state.gap ?? time, time)',
    replacement: 'state.gap ??= time',
  },
  'a gap does not make absence wait again': {
    kind: 'absence',
    file: 'absence.ts',
    text: 'this.#waitUntil(now + within)\n      }',
    replacement: '}',
  },
  'a resolving event comes before its match': {
    kind: 'match',
    file: 'timeline.ts',
    text: 'if (resolves === true && !(state.lastPulse !== undefined && state.lastPulse > time))',
    replacement: 'if (resolves === true && !(state.lastPulse !== undefined && state.lastPulse >= time))',
  },
}
