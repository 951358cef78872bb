/** The address of the server of `builds.setup.ts`; undefined outside a run of tests. */
const SERVER = process.env['RIVULET_TEST_BUILDS']

/** Whether this is a run of tests, which builds for all of its files. */
export const areShared = SERVER !== undefined

/** The folder with a build that the test files of a run share. The first call of the run builds it. Nothing may be written there. */
export async function sharedBuild(name: 'package' | 'programs'): Promise<string> {
  const response = await fetch(`${SERVER}/${name}`)
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}
