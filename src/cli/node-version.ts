type Version = readonly [major: number, minor: number, patch: number]

/**
 * What is wrong with this version of Node, as one sentence; undefined when it fits the range of package.json's `engines`.
 *
 * Versions that package.json does not ask for run this: so it is in the language and the library of ES2020.
 */
export function nodeVersionProblem(version: string, range: string): string | undefined {
  if (range.split('||').some((alternative) => fits(versionOf(version), alternative))) return undefined
  return `it needs Node ${range.replace(/\|\|/g, 'or')}, and this is Node ${version}.`
}

/** Whether a version fits comparators such as `>=22.22.3 <23` and `^22.22.3`, all of them. */
function fits(version: Version, comparators: string): boolean {
  return comparators
    .trim()
    .split(/\s+/)
    .every((comparator) => {
      const [, operator = '', text = ''] = /^(>=|<|\^|)(.*)$/.exec(comparator) || []
      if (text === '*') return true
      const bound = versionOf(text)
      if (operator === '<') return compare(version, bound) < 0
      if (operator === '') return compare(version, bound) === 0
      return compare(version, bound) >= 0 && (operator === '>=' || version[0] === bound[0])
    })
}

/** Its numbers; those that it leaves out are 0. */
function versionOf(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('-')[0]?.split('.').map(Number) || []
  return [major, minor, patch]
}

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2]
}
