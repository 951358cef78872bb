import { jobs } from './jobs.ts'
import { serveJobs } from './serve-jobs.ts'

// The file of the isolated thread.
serveJobs(jobs)
