// An estimate as one self-contained file for people: pictures, numbers, assumptions, sources, and the data.
#pragma once

#include <string>

#include "preflop/estimate.hpp"
#include "src/run/forecast.hpp"

namespace preflop {

// No outside file, script or font; the JSON of the estimate is embedded as <script type="application/json">. It
// prints on paper.
std::string report_html(const Estimate& estimate, const IntervalCurve& curve);

// The same without pictures, as Markdown.
std::string report_markdown(const Estimate& estimate);

}  // namespace preflop
