//! Cohort sim.
