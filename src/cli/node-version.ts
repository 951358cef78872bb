type Version = readonly [major: number, minor: number, patch: number]

/**
 * The error message for an unsupported version of Node; undefined if it is in the range of package.json's `engines`.
 *
 * Unsupported versions run this code, so it is limited to ES2020.
 */
export function nodeVersionProblem(version: string, range: string): string | undefined {
  if (range.split('||').some((alternative) => fits(versionOf(version), alternative))) return undefined
  return `requires Node ${range.replace(/\|\|/g, 'or')}, but this is Node ${version}.`
}

/** Whether a version satisfies all comparators, such as `>=22.22.3 <23` or `^22.22.3`. */
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

/** The numbers of a version; omitted ones are 0. */
function versionOf(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('-')[0]?.split('.').map(Number) || []
  return [major, minor, patch]
}

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2]
}
