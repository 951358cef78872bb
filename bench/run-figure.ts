/** The process in which one file of figures is measured. */
import type { Measure } from './figure.ts'

const [name] = process.argv.slice(2)
const { measure }: { measure: Measure } = await import(`./figures/${name}.ts`)
process.send?.(await measure(), () => process.disconnect())
