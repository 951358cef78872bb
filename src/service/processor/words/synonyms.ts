import { stem } from '../../corpus/stems.ts'

/** Words of technical prose that often stand for one another. */
const GROUPS: readonly string[] = [
  'max maximum limit limits cap capped most upper largest highest longest exceed exceeds exceeded over',
  'min minimum least lowest smallest',
  'remove removed removes removal delete deleted drop dropped drops vanished gone lost lose rid stopped',
  'add added adds introduce introduced introduces appeared landed learnt gained came arrived',
  'deprecated deprecate deprecates deprecation obsolete legacy',
  'replace replaced replaces replacement instead substitute alternative superseded successor prefer',
  'error errors exception throw throws thrown reject rejects',
  'fail fails failed failure failing',
  'return returns returned yield yields result results resolve resolves',
  'wait waits waiting delay timeout pause sleep',
  'ms millisecond milliseconds',
  'fast faster speed quick quicker quickly performance',
  'small smaller size tiny lightweight',
  'function functions method methods',
  'option options setting settings parameter parameters flag flags property properties',
  'disable disabled disables off',
  'enable enabled enables',
  'support supports supported supporting compatible compatibility works',
  'environment env',
  'terminate terminated terminates stop stops stopped kill kills exit end ends ended',
  'parallel concurrent concurrently concurrency simultaneously',
  'sync synchronous synchronously',
  'async asynchronous asynchronously',
  'directory directories folder folders',
  'config configuration configure configured',
  'print prints printed output outputs log logs',
  'exclude excludes ignore ignores ignored omit omits skip skips',
  'export exports exported expose exposes exposed entrypoint',
  'import imports imported',
  'symbols characters chars character length',
  'allow allows allowed permit permitted accept accepts accepted',
  'need needs needed require requires required requirement prerequisite',
  'rename renamed renames',
  'missing absent unavailable',
  'create creates created make makes',
  'parse parses parsed parsing parser',
  'wrong incorrect invalid malformed',
  'inspired inspiration based derived fork forked',
  'dependency dependencies',
  'browser browsers',
  'contain contains include includes included',
  'vulnerability vulnerabilities security cve',
  'encode encoding encodings encoder',
  'close closes closed closing',
  'globally global g',
  'commonjs cjs',
  'retry retries retried retrying reconnect reconnects reconnection again',
  'expire expires expired expiry expiration ttl stale',
  'item items entry entries element elements record',
  'store stores stored storing save saves saved set sets persist',
  'test tests testing mock mocked fake faked stub stubbed',
  'powered powers uses using built builds build',
  'big bigger large larger long longer exceeds exceed',
  'status statuses code codes',
  'emit emits emitted fire fires fired dispatch dispatched event events',
  'fix fixed fixes repair repaired bugfix resolved',
  'change changed changes modify modified alter',
  'job jobs task tasks',
  'argument arguments parameter parameters param params input',
  'leak leaks leaking',
  'authentication credentials password auth basic',
  'recommend recommended recommends suggest suggested advise advised',
  'start starts started begin begins launch launches',
  'differ differs different exception except',
  'unit seconds milliseconds ms',
  'callback callbacks handler handlers listener listeners',
  'pass passes passed passing provide provided supply supplied accept accepts given',
  'convert converts converted conversion transform transforms turn',
  'display displayed show shows render renders',
  'os operating platform platforms',
  'sponsor sponsored funded backed',
  'formerly previously former earlier renamed',
]

/** A word may be in several groups. */
const groupOf: ReadonlyMap<string, readonly string[]> = (() => {
  const groups = new Map<string, readonly string[]>()
  for (const group of GROUPS) {
    const words = group.split(' ')
    for (const root of new Set(words.map(stem))) groups.set(root, [...(groups.get(root) ?? []), ...words])
  }
  return groups
})()

/** The words of the groups that a stem is of. */
export function synonymsOf(root: string): readonly string[] {
  return groupOf.get(root) ?? []
}
