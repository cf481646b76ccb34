// A run that is interrupted: how long it takes on average, and how often to save.
//
// The model. Training is cut into equal segments; each ends with a save that stops training for `save`
// seconds and is safe `pending` seconds later (0 for a blocking save). Interruptions come as a Poisson
// process with mean time `mtbf` between them, while training and while restarting alike. One throws the
// run back to the last safe save; then it restarts, and a restart that is interrupted begins anew. A
// restart takes `seconds`, a share of them `waiting` seconds longer. With pending = 0 and no waiting this
// is Daly's complete model (J. T. Daly, FGCS 22 (2006) 303-312); Young's interval (CACM 17 (1974) 530) is
// its first order. Everything is exact for this model: the simulation of src/run/simulate has the same mean.
#pragma once

namespace preflop {

struct Restart {
  double seconds = 0;
  double waiting = 0;  // longer when no spare is at hand
  double share = 0;    // of the restarts that wait
};

// mtbf: seconds; infinite = nothing ever fails.
struct Hazard {
  double mtbf;
  Restart restart;
};

// Mean seconds from an interruption until training goes on, interrupted restarts included; >= the mean
// restart. Infinite when no restart ever gets through.
double mean_recovery(const Hazard& hazard);

// `count` (>= 1) segments of `work` seconds of training and a save.
struct Segments {
  double count = 1;
  double work = 0;
  double save = 0;
  double pending = 0;  // <= work + save
  double length() const { return work + save; }
};

// Mean seconds of training and saving until all segments are done, repeated work included, recoveries
// excluded: >= count x length; interruptions are this / mtbf.
double mean_running(const Segments& segments, double mtbf);

// Mean seconds of the whole: running and recoveries.
double mean_elapsed(const Segments& segments, const Hazard& hazard);

// Seconds of training between saves, for saves of `save` seconds: Young's first order sqrt(2 save mtbf),
// Daly's first order (that less save), and Daly's higher order.
double young_interval(double save, double mtbf);
double daly_first_order(double save, double mtbf);
double daly_interval(double save, double mtbf);

// The interval in [least, most] with the least mean time per second of training in the model above.
double best_interval(double save, double pending, const Hazard& hazard, double least, double most);

// Elapsed over useful seconds in the long run at an interval: what best_interval makes least.
double stretch(double interval, double save, double pending, const Hazard& hazard);

}  // namespace preflop
